/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which samples are watched, and pages of their own for those that are small.
 *
 * The block of such an object comes from the allocator below, so free(), realloc() and
 * malloc_usable_size() stay its own. It begins at a page and has a page more than the object needs:
 * what is behind the object, and what the allocator keeps in front of it, is on other pages, and
 * the pages of two objects are never neighbours, which the kernel would join into one mapping.
 */
#ifndef _MW_HEAP_ISOLATE_H
#define _MW_HEAP_ISOLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interval.h"
#include "record.h"

#define MW_ISOLATE_MAX 1000u /* most watches */

/* Objects that are larger stay where they are, and a part of that size is watched. */
#define MW_ISOLATE_OBJECT_MAX (64u << 10)

/* Blocks that exist for each watch: thinned out, an object keeps its block. */
#define MW_ISOLATE_BLOCKS 4u

/* Chooses a sampled allocation of @size bytes, with odds that *@ret_shift says. */
bool mw_isolate_chooses(size_t size, struct mw_random *random, uint32_t *ret_shift);

/* Whether small objects can have blocks. */
bool mw_isolate_has_blocks(void);

/* Memory of the program that blocks take beyond their objects, at most. */
uint64_t mw_isolate_bytes(void);

uint64_t mw_isolate_page(void);

/* A block for @size bytes; NULL if there is none. Keeps errno. */
void *mw_isolate_allocate(size_t alignment, size_t size);

/* A block has been freed. */
void mw_isolate_freed(void);

/* After a fork. */
void mw_isolate_clear(void);

/*
 * Memory for an allocation that was chosen. NULL: the caller takes it from where it would have; if
 * @due still says so, it is watched there.
 */
static inline void *mw_isolate(unsigned int *due, size_t alignment, size_t size)
{
	void *memory;

	if (!(*due & MW_DUE_ISOLATE) || size > MW_ISOLATE_OBJECT_MAX)
		return NULL;
	memory = mw_isolate_allocate(alignment, size);
	if (!memory)
		*due &= MW_DUE_SAMPLE | MW_DUE_TRACE;
	return memory;
}

#endif
