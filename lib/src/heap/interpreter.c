// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Removes native frames of the interpreter. Which module is the interpreter's is known by the
 * frame of its loop, which is the caller of each run of interpreted frames.
 */
#include "heap/interpreter.h"

#include <stdbool.h>

#include "heap/profile-format.h"

static bool is_interpreted(uint64_t frame)
{
	return mw_heap_frame_module(frame) == MW_HEAP_FRAME_CODE;
}

uint32_t mw_interpreter_trim(uint64_t *frames, uint32_t depth)
{
	uint32_t used = 0, begin = 0, end, module;

	while (begin < depth) {
		if (!is_interpreted(frames[begin])) {
			frames[used++] = frames[begin++];
			continue;
		}
		for (end = begin; end < depth && is_interpreted(frames[end]); end++)
			;
		module = end < depth ? mw_heap_frame_module(frames[end]) : MW_HEAP_FRAME_CODE;
		/* What the loop has called. */
		while (used && mw_heap_frame_module(frames[used - 1]) == module &&
		       !is_interpreted(frames[used - 1]))
			used--;
		while (begin < end)
			frames[used++] = frames[begin++];
		/* The loop and what has called it. */
		while (begin < depth && mw_heap_frame_module(frames[begin]) == module)
			begin++;
	}
	return used;
}
