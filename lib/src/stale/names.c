// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The names of sites.
 */
#include "stale/names.h"

#include "heap/frames.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As many frames of a site can be shown. */
#define NAMES_FRAMES 256

/* Names of templates of C++ can be very long. */
#define NAME_BYTES  1024
#define FRAME_BYTES 256

/**
 * struct mw_site_names - the names
 * @heap: has the profile as its first one; not owned
 * @frames: its frames
 * @words: names
 * @name_of: number of the word of each stack of the profile; owned
 * @name_of_place: number of the word of each place; owned
 * @places: number of places
 */
struct mw_site_names {
	const struct memwatch_heap *heap;
	struct mw_frames frames;
	struct mw_strings words;
	uint32_t *name_of;
	uint32_t *name_of_place;
	uint32_t places;
};

static uint32_t stack_in_heap(const struct mw_site_names *names, uint64_t stack)
{
	const struct mw_prof_profile *profile = names->heap->profiles;

	return stack < profile->nr_stacks ? profile->stack_of[stack] : MW_PROF_NONE;
}

/* "function", or "module+0x12" or "0x12". */
static void write_frame(const struct memwatch_heap_frame *frame, char *buf, size_t size)
{
	const char *slash = strrchr(frame->module, '/');

	if (*frame->function)
		snprintf(buf, size, "%s", frame->function);
	else if (*frame->module)
		snprintf(buf, size, "%s+0x%" PRIx64, slash ? slash + 1 : frame->module,
			 (uint64_t)frame->address);
	else
		snprintf(buf, size, "0x%" PRIx64, (uint64_t)frame->address);
}

/* Frame @frame of a stack of the heap. */
static bool find_frame(const struct mw_site_names *names, uint32_t number, uint32_t frame,
		       struct memwatch_heap_frame *ret)
{
	const struct mw_strings *strings = &names->heap->strings;
	uint32_t list[NAMES_FRAMES];
	const struct mw_frame *found;

	if (number == MW_PROF_NONE ||
	    frame >= mw_frames_expand(&names->frames, names->frames.stack_of[number], list,
				      NAMES_FRAMES))
		return false;
	found = mw_frames_at(&names->frames, list[frame]);
	*ret = (struct memwatch_heap_frame){
		.sz = sizeof(*ret),
		.function = mw_strings_text(strings, found->function),
		.file = mw_strings_text(strings, found->file),
		.module = mw_strings_text(strings, found->module),
		.line = found->line,
		.inlined = found->inlined,
		.address = names->frames.addresses[list[frame]],
	};
	return true;
}

/* The frames one behind the other, each called by the next one. */
static void write_name(const struct mw_site_names *names, uint32_t stack, char *buf, size_t size)
{
	struct memwatch_heap_frame frame;
	char text[FRAME_BYTES];
	size_t len = 0;

	*buf = '\0';
	for (uint32_t i = 0; len < size && find_frame(names, stack, i, &frame); i++) {
		write_frame(&frame, text, sizeof(text));
		len += (size_t)snprintf(buf + len, size - len, "%s%s", i ? " < " : "", text);
	}
}

/* The mapping of the first profile that has @address. */
static uint32_t find_mapping(const struct memwatch_heap *heap, uint64_t address)
{
	const struct mw_prof_profile *profile = heap->profiles;

	for (uint32_t i = 0; i < profile->mappings; i++) {
		const struct mw_prof_mapping *m = &heap->mappings[profile->first_mapping + i];

		if (address >= m->start && address < m->end)
			return profile->first_mapping + i;
	}
	return MW_PROF_NONE;
}

int mw_place_stacks_add(struct mw_place_stacks *ret, struct memwatch_heap *heap,
			const struct mw_charges *charges)
{
	uint32_t count = charges->places.count, location;
	int err = 0;

	*ret = (struct mw_place_stacks){ .heap = heap, .stacks = calloc(count + 1UL, 4) };
	if (!ret->stacks)
		return -ENOMEM;
	for (uint32_t i = 0; !err && i < count; i++, ret->count++) {
		uint64_t ip = mw_charges_ip(charges, MW_CHARGES_PLACE_FIRST + i);
		struct mw_prof_location at = { .address = ip, .mapping = find_mapping(heap, ip) };

		err = mw_heap_add_location(heap, &at, &location)
			      ?: mw_heap_add_stack(heap, &location, 1, &ret->stacks[i]);
	}
	return err;
}

/* Names for the @count stacks at @stacks of the heap. */
static int add_names(struct mw_site_names *names, const uint32_t *stacks, uint64_t count,
		     uint32_t **ret)
{
	char name[NAME_BYTES];
	int err = 0;

	*ret = calloc(count + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	for (uint64_t i = 0; !err && i < count; i++) {
		write_name(names, stacks[i], name, sizeof(name));
		err = mw_strings_add(&names->words, name, strlen(name), &(*ret)[i]);
	}
	return err;
}

int mw_site_names_new(const struct memwatch_heap *heap, const struct mw_place_stacks *places,
		      struct mw_site_names **ret)
{
	struct mw_site_names *names = calloc(1, sizeof(*names));
	int err;

	if (!names)
		return -ENOMEM;
	names->heap = heap;
	names->places = places->heap == heap ? places->count : 0;
	err = mw_frames_init(&names->frames, heap) ?: mw_strings_init(&names->words);
	if (!err)
		err = add_names(names, heap->profiles->stack_of, heap->profiles->nr_stacks,
				&names->name_of);
	if (!err)
		err = add_names(names, places->stacks, names->places, &names->name_of_place);
	if (err)
		mw_site_names_free(names);
	else
		*ret = names;
	return err;
}

void mw_site_names_free(struct mw_site_names *names)
{
	if (!names)
		return;
	mw_frames_uninit(&names->frames);
	mw_strings_uninit(&names->words);
	free(names->name_of);
	free(names->name_of_place);
	free(names);
}

const char *mw_site_names_text(const struct mw_site_names *names, uint64_t number)
{
	if (names && number >= MW_CHARGES_PLACE_FIRST) {
		number -= MW_CHARGES_PLACE_FIRST;
		return number < names->places
			       ? mw_strings_text(&names->words, names->name_of_place[number])
			       : "";
	}
	if (!names || stack_in_heap(names, number) == MW_PROF_NONE)
		return "";
	return mw_strings_text(&names->words, names->name_of[number]);
}

bool mw_site_names_frame(const struct mw_site_names *names, uint64_t stack, uint32_t frame,
			 struct memwatch_heap_frame *ret)
{
	return names && find_frame(names, stack_in_heap(names, stack), frame, ret);
}
