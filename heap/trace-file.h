/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The file of a trace: its header, and chunks that are mapped while a thread writes into them.
 */
#ifndef _MW_HEAP_TRACE_FILE_H
#define _MW_HEAP_TRACE_FILE_H

#include <stdint.h>

#include "trace-format.h"

/*
 * Creates the file beside the profile and maps its header, which has the identity of the process
 * and no magic yet. Returns 0 or a negative errno. Caller holds the maintenance lock.
 */
int mw_trace_file_create(struct mw_trace_header **ret);

/* Stores the magic: readers accept the file from now on. */
void mw_trace_file_publish(struct mw_trace_header *header);

/*
 * The next chunk, mapped and zero; NULL if there is no room, and header.limits says why. Caller has
 * blocked signals until it is in a writer: a handler may fork, and its child must know what is not
 * mapped there.
 */
struct mw_trace_chunk *mw_trace_file_chunk(struct mw_trace_header *header);

/* Unmaps it; what it contains is in the file. */
void mw_trace_file_release(struct mw_trace_chunk *chunk);

#endif
