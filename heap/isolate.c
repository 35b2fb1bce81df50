/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which samples are watched, and pages of their own for those that are small.
 */
#include <errno.h>
#include <unistd.h>

#include "config.h"
#include "isolate.h"
#include "next.h"
#include "profile.h"

static uint32_t blocks; /* that exist */

uint64_t mw_isolate_page(void)
{
	static uint64_t page;

	if (!page)
		page = (uint64_t)sysconf(_SC_PAGESIZE);
	return page;
}

/*
 * jemalloc and tcmalloc have functions of their own that free an object and believe what they are
 * told about its size. What was allocated in place of a smaller object must not get there.
 */
bool mw_isolate_has_blocks(void)
{
	return mw_next.allocator == MW_HEAP_ALLOCATOR_GLIBC ||
	       mw_next.allocator == MW_HEAP_ALLOCATOR_MIMALLOC;
}

bool mw_isolate_chooses(size_t size, struct mw_random *random, uint32_t *ret_shift)
{
	const struct mw_heap_header *header = mw_profile.header;
	uint32_t shift = __atomic_load_n(&header->watch_shift, __ATOMIC_RELAXED);

	if (!header->watch_max || size < header->watch_least)
		return false;
	*ret_shift = shift;
	return !shift || mw_random_unit(random) * (double)(UINT64_C(1) << shift) < 1;
}

uint64_t mw_isolate_bytes(void)
{
	return (uint64_t)mw_config.isolate * MW_ISOLATE_BLOCKS * mw_isolate_page();
}

static bool block_count(void)
{
	uint32_t most = mw_profile.header->watch_max * MW_ISOLATE_BLOCKS;

	if (__atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED) <= most)
		return true;
	mw_isolate_freed();
	return false;
}

void *mw_isolate_allocate(size_t alignment, size_t size)
{
	uint64_t page = mw_isolate_page();
	uint64_t bytes = (size + (size == 0) + page - 1) / page * page + page;
	void *memory = NULL;
	int saved = errno;

	if (!alignment || alignment & (alignment - 1) || !block_count()) {
		mw_count(&mw_profile.header->watch_refused, 1);
		return NULL;
	}
	if (mw_next.posix_memalign(&memory, alignment > page ? alignment : page, bytes)) {
		mw_count(&mw_profile.header->watch_refused, 1);
		mw_isolate_freed();
		memory = NULL;
	}
	errno = saved;
	return memory;
}

void mw_isolate_freed(void)
{
	__atomic_fetch_sub(&blocks, 1, __ATOMIC_RELAXED);
}

void mw_isolate_clear(void)
{
	blocks = 0;
}
