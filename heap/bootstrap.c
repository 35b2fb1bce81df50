/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A small heap for the time in which the next malloc is being looked up.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "bootstrap.h"
#include "filter.h"

#define BLOCK_ALIGNMENT 16

/* Precedes each block. */
struct bootstrap_block {
	size_t size;
	size_t unused; /* keeps blocks aligned */
};

char mw_bootstrap_heap[MW_BOOTSTRAP_BYTES]
	__attribute__((visibility("hidden"), aligned(BLOCK_ALIGNMENT)));

static size_t bootstrap_used;

void *mw_bootstrap_allocate(size_t alignment, size_t size)
{
	size_t old = __atomic_load_n(&bootstrap_used, __ATOMIC_RELAXED), begin, end;
	struct bootstrap_block block = { .size = size };

	if (alignment < BLOCK_ALIGNMENT)
		alignment = BLOCK_ALIGNMENT;
	do {
		uintptr_t address = (uintptr_t)mw_bootstrap_heap + old + sizeof(block);

		begin = old + sizeof(block) + (-address & (alignment - 1));
		if (size > MW_BOOTSTRAP_BYTES || begin + size > MW_BOOTSTRAP_BYTES) {
			errno = ENOMEM;
			return NULL;
		}
		end = (begin + size + BLOCK_ALIGNMENT - 1) & ~(size_t)(BLOCK_ALIGNMENT - 1);
	} while (!__atomic_compare_exchange_n(&bootstrap_used, &old, end, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	memcpy(mw_bootstrap_heap + begin - sizeof(block), &block, sizeof(block));
	mw_filter_add(mw_bootstrap_heap + begin);
	return mw_bootstrap_heap + begin;
}

size_t mw_bootstrap_size(const void *address)
{
	struct bootstrap_block block;

	memcpy(&block, (const char *)address - sizeof(block), sizeof(block));
	return block.size;
}
