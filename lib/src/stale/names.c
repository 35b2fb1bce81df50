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
 */
struct mw_site_names {
	const struct memwatch_heap *heap;
	struct mw_frames frames;
	struct mw_strings words;
	uint32_t *name_of;
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

/* The frames one behind the other, each called by the next one. */
static void write_name(const struct mw_site_names *names, uint64_t stack, char *buf, size_t size)
{
	struct memwatch_heap_frame frame;
	char text[FRAME_BYTES];
	size_t len = 0;

	*buf = '\0';
	for (uint32_t i = 0; len < size && mw_site_names_frame(names, stack, i, &frame); i++) {
		write_frame(&frame, text, sizeof(text));
		len += (size_t)snprintf(buf + len, size - len, "%s%s", i ? " < " : "", text);
	}
}

int mw_site_names_new(const struct memwatch_heap *heap, struct mw_site_names **ret)
{
	uint64_t nr = heap->profiles[0].nr_stacks;
	struct mw_site_names *names = calloc(1, sizeof(*names));
	char name[NAME_BYTES];
	int err;

	if (!names)
		return -ENOMEM;
	names->heap = heap;
	err = mw_frames_init(&names->frames, heap) ?: mw_strings_init(&names->words);
	names->name_of = calloc(nr + 1, sizeof(*names->name_of));
	if (!err && !names->name_of)
		err = -ENOMEM;
	for (uint64_t i = 0; !err && i < nr; i++) {
		write_name(names, i, name, sizeof(name));
		err = mw_strings_add(&names->words, name, strlen(name), &names->name_of[i]);
	}
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
	free(names);
}

const char *mw_site_names_text(const struct mw_site_names *names, uint64_t stack)
{
	if (!names || stack_in_heap(names, stack) == MW_PROF_NONE)
		return "";
	return mw_strings_text(&names->words, names->name_of[stack]);
}

bool mw_site_names_frame(const struct mw_site_names *names, uint64_t stack, uint32_t frame,
			 struct memwatch_heap_frame *ret)
{
	uint32_t number = names ? stack_in_heap(names, stack) : MW_PROF_NONE, list[NAMES_FRAMES];
	const struct mw_strings *strings;
	const struct mw_frame *found;

	if (number == MW_PROF_NONE ||
	    frame >= mw_frames_expand(&names->frames, names->frames.stack_of[number], list,
				      NAMES_FRAMES))
		return false;
	strings = &names->heap->strings;
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
