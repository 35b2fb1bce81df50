/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The file of a trace: its header, and chunks that are mapped while a thread writes into them.
 */
#ifndef _MW_HEAP_TRACE_FILE_H
#define _MW_HEAP_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace-format.h"

/*
 * Creates the file beside the profile. Adds the identity of the process to @header, which becomes
 * that of the file; the file has its name when the header is complete. @ret is where it is mapped.
 * Returns 0 or a negative errno. Caller holds the maintenance lock.
 */
int mw_trace_file_create(struct mw_trace_header *header, struct mw_trace_header **ret);

/* Consecutive chunks of the file, mapped. */
struct mw_trace_window {
	uint8_t *memory; /* NULL: none */
	uint32_t chunks;
	uint32_t used; /* chunks that are or were written */
};

/* The bytes that it maps. */
static inline size_t mw_trace_window_bytes(const struct mw_trace_window *window)
{
	return (size_t)window->chunks * MW_TRACE_CHUNK_BYTES;
}

/*
 * Takes the next @chunks, or fewer if there is no room for all, mapped and zero. False if there is
 * none, and header.limits says why. Caller has blocked interrupts until the window is in a writer:
 * a handler may fork, and its child must know what is not mapped there.
 */
bool mw_trace_file_window(struct mw_trace_header *header, uint32_t chunks,
			  struct mw_trace_window *ret);

/* Unmaps it; what it contains is in the file. */
void mw_trace_file_release(struct mw_trace_window *window);

#endif
