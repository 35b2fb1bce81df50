/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A small heap for the time in which the next malloc is being looked up: dlsym() allocates.
 * Its blocks are never given back. The filter passes their addresses, so that free() finds
 * out about them in its slow path.
 */
#ifndef _MW_HEAP_BOOTSTRAP_H
#define _MW_HEAP_BOOTSTRAP_H

#include <stdbool.h>
#include <stddef.h>

#define MW_BOOTSTRAP_BYTES (16u << 10)

extern char mw_bootstrap_heap[MW_BOOTSTRAP_BYTES] __attribute__((visibility("hidden")));

/* Zeroed memory, or NULL with ENOMEM. @alignment is a power of two. */
void *mw_bootstrap_allocate(size_t alignment, size_t size);

static inline bool mw_bootstrap_owns(const void *address)
{
	return (const char *)address >= mw_bootstrap_heap &&
	       (const char *)address < mw_bootstrap_heap + MW_BOOTSTRAP_BYTES;
}

/* How many bytes of a block can be copied when it is reallocated with the real allocator. */
size_t mw_bootstrap_size(const void *address);

#endif
