/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Stacks that can be compared. The locations of two profiles differ in their addresses even
 * if both are of one program, because it was mapped elsewhere. Here a location becomes a
 * spot, the list of its frames, and a stack a list of spots; equal ones have equal numbers.
 * Frames are equal if they show the same line of the same function of the same module; if
 * nothing is known about an address, frames are equal if it is.
 */
#ifndef MW_HEAP_FRAMES_H
#define MW_HEAP_FRAMES_H

#include "heap/model.h"

/* Strings are numbers in the heap's @strings. No padding, because it is compared as bytes. */
struct mw_frame {
	uint32_t function, file, module, line;
	uint64_t address; /* 0 if @function is known */
	uint32_t inlined;
	uint32_t zero;
};

/**
 * struct mw_frames - the frames of all profiles of a heap
 * @frames: interned struct mw_frame
 * @addresses: of each frame, the first address that showed it
 * @spots: interned arrays of frames, innermost first
 * @stacks: interned arrays of spots, innermost first
 * @stack_of: of each stack of the heap, its number in @stacks
 */
struct mw_frames {
	struct mw_strings frames;
	uint64_t *addresses;
	uint32_t nr_addresses, address_capacity;
	struct mw_strings spots;
	struct mw_strings stacks;
	uint32_t *stack_of;
};

/* Returns 0 or -ENOMEM; the caller calls mw_frames_uninit() in both cases. */
int mw_frames_init(struct mw_frames *frames, const struct memwatch_heap *heap);
void mw_frames_uninit(struct mw_frames *frames);

static inline const struct mw_frame *mw_frames_at(const struct mw_frames *frames, uint32_t number)
{
	return (const void *)mw_strings_text(&frames->frames, number);
}

/*
 * Writes the frames of a stack, innermost first, to @to, which has room for @max. Returns
 * how many it has, at most @max: those farther out are left out.
 */
uint32_t mw_frames_expand(const struct mw_frames *frames, uint32_t stack, uint32_t *to,
			  uint32_t max);

#endif /* MW_HEAP_FRAMES_H */
