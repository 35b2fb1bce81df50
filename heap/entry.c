/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The functions of the C library that this library interposes. malloc_usable_size() and
 * memalignment() are not among them, because pointers are never changed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap.h"
#include "config.h"
#include "entry.h"
#include "modules.h"
#include "next.h"
#include "operators.h"
#include "trace.h"

/* clang-format off */
MW_ALLOCATOR(malloc, (size_t size), (size), mw_next.malloc, 1, size, MW_HEAP_SOURCE_MALLOC)
MW_ALLOCATOR(aligned_alloc, (size_t alignment, size_t size), (alignment, size),
	     mw_next.aligned_alloc, alignment, size, MW_HEAP_SOURCE_ALIGNED)
MW_ALLOCATOR(memalign, (size_t alignment, size_t size), (alignment, size),
	     mw_next.memalign, alignment, size, MW_HEAP_SOURCE_ALIGNED)
MW_ALLOCATOR(valloc, (size_t size), (size), mw_next.valloc, 1, size, MW_HEAP_SOURCE_ALIGNED)
MW_ALLOCATOR(pvalloc, (size_t size), (size), mw_next.pvalloc, 1, size, MW_HEAP_SOURCE_ALIGNED)
MW_DEALLOCATOR(free, (void *address), (address), mw_next.free)
MW_DEALLOCATOR(cfree, (void *address), (address), mw_next.free)
/* clang-format on */

MW_SLOW void *calloc_slow(size_t count, size_t size)
{
	size_t bytes = count * size; /* the fast half has excluded an overflow */
	unsigned int due = mw_record_due(bytes);
	void *memory = mw_isolate(&due, 1, bytes);

	if (memory)
		memset(memory, 0, bytes);
	else
		memory = mw_next.calloc(count, size);
	if (due && memory)
		mw_record_allocation(due, memory, bytes, MW_HEAP_SOURCE_CALLOC, MW_FRAME);
	return memory;
}

MW_EXPORT void *calloc(size_t count, size_t size)
{
	size_t bytes;

	/* What overflows fails below, and is no allocation. */
	if (mw_likely(!__builtin_mul_overflow(count, size, &bytes)) &&
	    mw_unlikely(mw_countdown_expires(bytes)))
		return calloc_slow(count, size);
	return mw_next.calloc(count, size);
}

MW_SLOW int posix_memalign_slow(void **ret, size_t alignment, size_t size)
{
	unsigned int due = mw_record_due(size);
	void *memory = alignment % sizeof(void *) ? NULL : mw_isolate(&due, alignment, size);
	int rc = 0;

	if (memory)
		*ret = memory;
	else
		rc = mw_next.posix_memalign(ret, alignment, size);
	if (due && !rc && *ret)
		mw_record_allocation(due, *ret, size, MW_HEAP_SOURCE_ALIGNED, MW_FRAME);
	return rc;
}

MW_EXPORT int posix_memalign(void **ret, size_t alignment, size_t size)
{
	if (mw_unlikely(mw_countdown_expires(size)))
		return posix_memalign_slow(ret, alignment, size);
	return mw_next.posix_memalign(ret, alignment, size);
}

/* A block of the bootstrap heap moves into the real one. */
static void *bootstrap_move(const void *address, size_t size)
{
	void *moved = malloc(size);
	size_t old = mw_bootstrap_size(address);

	if (moved)
		memcpy(moved, address, old < size ? old : size);
	return moved;
}

/* The new object has pages of its own. NULL: it has not, and nothing has happened. */
static void *realloc_isolated(unsigned int *due, void *address, size_t size)
{
	size_t old = 0;
	void *memory;

	if (!(*due & MW_DUE_ISOLATE) || !size)
		return NULL;
	if (address && !mw_next.malloc_usable_size)
		return NULL;
	memory = mw_isolate(due, 1, size);
	if (!memory || !address)
		return memory;
	old = mw_next.malloc_usable_size(address);
	memcpy(memory, address, old < size ? old : size);
	mw_next.free(address);
	return memory;
}

/*
 * A reallocation ends one object and begins another one, even if it stays where it is. The old
 * sample leaves the map before, because afterwards its address may belong to another thread.
 */
MW_SLOW void *realloc_slow(void *address, size_t size, bool expired)
{
	uint64_t moving = MW_RECORD_NOT_MOVING, time;
	unsigned int due = expired ? mw_record_due(size) : mw_record_due_traced();
	void *memory;

	if (mw_bootstrap_owns(address))
		return bootstrap_move(address, size);
	if (address && mw_filter_may_have(address))
		moving = mw_record_moving(address);
	time = due & MW_DUE_TRACE ? mw_trace_now() : 0;
	memory = realloc_isolated(&due, address, size);
	if (!memory)
		memory = mw_next.realloc(address, size);
	/* Without a result the object is still there, unless its new size was 0. */
	mw_record_moved(moving, memory || !size);
	if (due & MW_DUE_TRACE && address && (memory || !size))
		mw_trace_free(&mw_thread, address, time, MW_FRAME);
	if (due && memory)
		mw_record_allocation(due, memory, size, MW_HEAP_SOURCE_REALLOC, MW_FRAME);
	return memory;
}

MW_EXPORT void *realloc(void *address, size_t size)
{
	bool expired = mw_countdown_expires(size);

	if (mw_unlikely(expired || mw_filter_may_have(address)))
		return realloc_slow(address, size, expired);
	return mw_next.realloc(address, size);
}

/*
 * As in the C library, this is a call of realloc() that the program can interpose. One with an
 * allocator of its own may not define this function, and the object is its allocator's.
 */
MW_EXPORT void *reallocarray(void *address, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return mw_next.front_realloc(address, bytes);
}

/* Called, not jumped to: the site of this free begins with the entry point. */
MW_SLOW bool free_sized_slow(void *address)
{
	return mw_record_free(address, MW_FRAME);
}

/*
 * C23; where the C library has them, they may check the size. The block of an object that has pages
 * of its own is larger than its size says, so then they are not used at all: a forked child does
 * not know which objects of its parent these are.
 */
MW_EXPORT void free_sized(void *address, size_t size)
{
	if (mw_unlikely(mw_filter_may_have(address)) && !free_sized_slow(address))
		return;
	if (mw_next.free_sized && !mw_config.isolate)
		mw_next.free_sized(address, size);
	else
		mw_next.free(address);
}

MW_EXPORT void free_aligned_sized(void *address, size_t alignment, size_t size)
{
	if (mw_unlikely(mw_filter_may_have(address)) && !free_sized_slow(address))
		return;
	if (mw_next.free_aligned_sized && !mw_config.isolate)
		mw_next.free_aligned_sized(address, alignment, size);
	else
		mw_next.free(address);
}

/*
 * What is remembered about addresses ends here. Once before, for what the destructors of the
 * library find out again, and once after it is gone.
 */
MW_EXPORT int dlclose(void *handle)
{
	int rc;

	mw_operators_keep();
	mw_module_unloaded();
	rc = mw_next.dlclose(handle);
	mw_module_unloaded();
	return rc;
}
