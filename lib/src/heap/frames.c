// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Stacks that can be compared.
 */
#include "heap/frames.h"

#include <stdlib.h>
#include <string.h>

#include "heap/allocator.h"
#include "base/array.h"

/* An allocator does not have more functions of its own below its entry. */
#define ALLOCATOR_FRAMES 16
/* As many frames as one location can have. */
#define SPOT_FRAMES 160

static uint32_t spot_length(const struct mw_frames *frames, uint32_t spot)
{
	return (uint32_t)(mw_strings_length(&frames->spots, spot) / sizeof(uint32_t));
}

static const uint32_t *spot_frames(const struct mw_frames *frames, uint32_t spot)
{
	return (const void *)mw_strings_text(&frames->spots, spot);
}

static int add_frame(struct mw_frames *frames, const struct mw_frame *frame, uint64_t address,
		     uint32_t *ret)
{
	uint32_t before = frames->frames.count;

	if (mw_strings_add(&frames->frames, frame, sizeof(*frame), ret))
		return -ENOMEM;
	if (frames->frames.count == before)
		return 0;
	if (mw_array_reserve(frames->addresses, frames->address_capacity, *ret + 1U))
		return -ENOMEM;
	frames->addresses[*ret] = address;
	return 0;
}

/* The address in the file if the mapping says where that is. */
static uint64_t file_address(const struct memwatch_heap *heap,
			     const struct mw_prof_location *location)
{
	const struct mw_prof_mapping *mapping;

	if (location->mapping == MW_PROF_NONE)
		return location->address;
	mapping = &heap->mappings[location->mapping];
	if (mapping->has_bias)
		return location->address - mapping->bias;
	if (location->address < mapping->start || location->address >= mapping->end)
		return location->address;
	return location->address - mapping->start + mapping->offset;
}

/* The functions of an interpreted program are told apart by their files. */
static uint32_t location_module(const struct memwatch_heap *heap,
				const struct mw_prof_location *location)
{
	if (location->interpreted)
		return heap->lines[location->first_line].file;
	return location->mapping == MW_PROF_NONE ? 0 : heap->mappings[location->mapping].path;
}

static int add_spot(struct mw_frames *frames, const struct memwatch_heap *heap,
		    const struct mw_prof_location *location, uint32_t *ret)
{
	uint32_t module = location_module(heap, location);
	uint64_t address = file_address(heap, location);
	uint32_t list[SPOT_FRAMES], nr = 0;

	for (uint32_t i = 0; i < location->lines && nr < SPOT_FRAMES; i++) {
		const struct mw_prof_line *line = &heap->lines[location->first_line + i];
		struct mw_frame frame = { .function = line->function,
					  .file = line->file,
					  .module = module,
					  .line = line->number,
					  .inlined = i + 1 < location->lines };

		if (!line->function)
			frame.address = address;
		if (add_frame(frames, &frame, address, &list[nr++]))
			return -ENOMEM;
	}
	if (!nr) {
		struct mw_frame frame = { .module = module, .address = address };

		if (add_frame(frames, &frame, address, &list[nr++]))
			return -ENOMEM;
	}
	return mw_strings_add(&frames->spots, list, nr * sizeof(*list), ret);
}

/* Whether the function that contains the address belongs to an allocator. */
static bool is_allocator(const struct mw_frames *frames, const struct memwatch_heap *heap,
			 uint32_t spot)
{
	const struct mw_frame *frame = mw_frames_at(
		frames, spot_frames(frames, spot)[spot_length(frames, spot) - 1]);

	return mw_allocator_has(mw_strings_text(&heap->strings, frame->function),
				mw_strings_text(&heap->strings, frame->module));
}

/* What a location has become. An interpreted function is called by no allocator. */
struct location_spot {
	uint32_t spot;
	bool allocator, interpreted;
};

/*
 * Converts a stack without the innermost frames that belong to the allocator. Functions in between
 * may be unknown ones of its own, except in profiles of memwatch, which sees allocators from
 * outside.
 */
static int add_stack(struct mw_frames *frames, const struct memwatch_heap *heap, uint32_t stack,
		     const struct location_spot *spots, uint32_t **buffer, size_t *room)
{
	bool outside = heap->nr_profiles && heap->profiles[0].info.format == MEMWATCH_HEAP_MEMWATCH;
	uint32_t nr, skip = 0, most = ALLOCATOR_FRAMES;
	const uint32_t *locations = mw_heap_stack(heap, stack, &nr);

	if (mw_array_reserve(*buffer, *room, (size_t)nr + 1))
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		const struct location_spot *spot = &spots[locations[i]];

		(*buffer)[i] = spot->spot;
		if (spot->interpreted || (outside && !spot->allocator))
			most = 0;
		if (i < most && spot->allocator)
			skip = i + 1;
	}
	/* A stack that is nothing else keeps its outermost frame. */
	if (skip == nr && nr)
		skip = nr - 1;
	return mw_strings_add(&frames->stacks, *buffer + skip, (nr - skip) * sizeof(**buffer),
			      &frames->stack_of[stack]);
}

int mw_frames_init(struct mw_frames *frames, const struct memwatch_heap *heap)
{
	struct location_spot *spots = reallocarray(NULL, heap->nr_locations + 1UL, sizeof(*spots));
	uint32_t *buffer = NULL;
	size_t room = 0;
	int err = 0;

	*frames = (struct mw_frames){ 0 };
	frames->stack_of = reallocarray(NULL, heap->stacks.count, sizeof(*frames->stack_of));
	if (!spots || !frames->stack_of || mw_strings_init(&frames->frames) ||
	    mw_strings_init(&frames->spots) || mw_strings_init(&frames->stacks))
		err = -ENOMEM;
	for (uint32_t i = 0; !err && i < heap->nr_locations; i++) {
		err = add_spot(frames, heap, &heap->locations[i], &spots[i].spot);
		if (err)
			break;
		spots[i].allocator = is_allocator(frames, heap, spots[i].spot);
		spots[i].interpreted = heap->locations[i].interpreted;
	}
	for (uint32_t i = 0; !err && i < heap->stacks.count; i++)
		err = add_stack(frames, heap, i, spots, &buffer, &room);
	free(spots);
	free(buffer);
	return err;
}

void mw_frames_uninit(struct mw_frames *frames)
{
	mw_strings_uninit(&frames->frames);
	mw_strings_uninit(&frames->spots);
	mw_strings_uninit(&frames->stacks);
	free(frames->addresses);
	free(frames->stack_of);
	*frames = (struct mw_frames){ 0 };
}

uint32_t mw_frames_expand(const struct mw_frames *frames, uint32_t stack, uint32_t *to,
			  uint32_t max)
{
	const uint32_t *spots = (const void *)mw_strings_text(&frames->stacks, stack);
	size_t nr = mw_strings_length(&frames->stacks, stack) / sizeof(*spots);
	uint32_t used = 0;

	for (size_t i = 0; i < nr; i++) {
		const uint32_t *list = spot_frames(frames, spots[i]);
		uint32_t len = spot_length(frames, spots[i]);

		for (uint32_t k = 0; k < len; k++) {
			if (used == max)
				return used;
			to[used++] = list[k];
		}
	}
	return used;
}
