/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which samples are watched, and pages of their own for those that are small.
 *
 * The block of such an object comes from the allocator below, so free(), realloc() and
 * malloc_usable_size() stay its own. It begins at a page and ends on another page than the object:
 * what is behind the object, and what the allocator keeps in front of it, is on other pages, and
 * the pages of two objects are never neighbours, which the kernel would join into one mapping.
 *
 * In front of it, mostly, is a guard: a block that nobody uses. A vector that is loaded at the end
 * of another object, with what is behind masked, would have the page of this one marked as
 * accessed. Who has a block gives its guard back by mw_isolate_unguard().
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

/* Memory of the program that blocks and guards take beyond the objects, about. */
uint64_t mw_isolate_bytes(void);

uint64_t mw_isolate_page(void);

/* The first page that begins at @address or behind it. */
uint64_t mw_isolate_page_after(uint64_t address);

/* A block for @size bytes; NULL if there is none. @ret_guard: 0 if it has none. Keeps errno. */
void *mw_isolate_allocate(size_t alignment, size_t size, uint32_t *ret_guard);

/* The object needs its guard no more. @guard may be 0. Keeps errno. */
void mw_isolate_unguard(uint32_t guard);

/* A block has been freed. */
void mw_isolate_freed(void);

/* After a fork. The child keeps the guards of its parent: to free them would copy their pages. */
void mw_isolate_clear(void);

/*
 * Memory for an allocation that was chosen. NULL: the caller takes it from where it would have; if
 * @due still says so, it is watched there.
 */
static inline void *mw_isolate(unsigned int *due, size_t alignment, size_t size)
{
	uint32_t guard;
	void *memory;

	if (!(*due & MW_DUE_ISOLATE) || size > MW_ISOLATE_OBJECT_MAX)
		return NULL;
	memory = mw_isolate_allocate(alignment, size, &guard);
	if (memory)
		*due |= guard << MW_DUE_GUARD;
	else
		*due &= MW_DUE_SAMPLE | MW_DUE_TRACE;
	return memory;
}

#endif
