/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Frames of call stacks, for people and as JSON.
 */
#ifndef MW_FRAME_H
#define MW_FRAME_H

#include <limits.h>

#include <memwatch/heap.h>

#include "output/json.h"

/* The name of a file, and an address in it. */
#define MW_FRAME_NAME_SIZE (NAME_MAX + 32)

/* How many frames mw_stack_text() shows. */
#define MW_STACK_TEXT_FRAMES 3

/*
 * The name of a frame: its function, else its module and address; MW_FRAME_NAME_SIZE is enough for
 * them. The bytes are those of the file, so the result must be escaped for where it goes. Returns
 * @buf or a string of the frame.
 */
const char *mw_frame_name(const struct memwatch_heap_frame *frame, char *buf, size_t size);

/*
 * The same for a list in which nothing else says where the function is: a function of an
 * interpreter has its file behind it, "run (/srv/job.py)". Free it; NULL: there is no memory.
 */
char *mw_frame_label(const struct memwatch_heap_frame *frame);

/*
 * "run (job.c:12), called by work (job.c:20) and main (main.c:7)" from at most
 * MW_STACK_TEXT_FRAMES frames, the innermost first. It is not escaped. Returns @buf.
 */
const char *mw_stack_text(const struct memwatch_heap_frame *frames, size_t nr, char *buf,
			  size_t size);

/* Writes function, file, line, module, address and inlined into the object that is open. */
void mw_frame_json(struct mw_json *json, const struct memwatch_heap_frame *frame);

/* Writes a value and its interval as an object; what is not known is null. */
void mw_estimate_json(struct mw_json *json, const char *key,
		      const struct memwatch_heap_estimate *estimate);

#endif
