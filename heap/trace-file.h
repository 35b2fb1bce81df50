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
 * Creates the file beside the profile. Adds the identity of the process to @header, which becomes
 * that of the file; the file has its name when the header is complete. @ret is where it is mapped.
 * Returns 0 or a negative errno. Caller holds the maintenance lock.
 */
int mw_trace_file_create(struct mw_trace_header *header, struct mw_trace_header **ret);

/*
 * The next chunk, mapped and zero; NULL if there is no room, and header.limits says why. Caller has
 * blocked signals until it is in a writer: a handler may fork, and its child must know what is not
 * mapped there.
 */
struct mw_trace_chunk *mw_trace_file_chunk(struct mw_trace_header *header);

/* Unmaps it; what it contains is in the file. */
void mw_trace_file_release(struct mw_trace_chunk *chunk);

#endif
