/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which samples are watched, and pages of their own for those that are small.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "isolate.h"
#include "next.h"
#include "profile.h"
#include "runtime.h"
#include "thread.h"

/* What a guard has at least: the widest vector, and what the C library keeps of two blocks. */
#define GUARD_LEAST 80u

/* The C library keeps one word for each block, and leaves as much as this of a block it divides. */
#define WORD	   sizeof(size_t)
#define MARGIN	   64u

#define GUARDS_MAX (MW_ISOLATE_MAX * MW_ISOLATE_BLOCKS)

/* Enough that the end of a block is on another page than its object. */
#define TAIL_BYTES 64u

static uint32_t blocks; /* that exist */

/*
 * The profile has the number of a guard, and not its address: nobody who writes to the file can
 * have other memory freed.
 */
static uintptr_t guards[GUARDS_MAX];
static uint32_t guard_hint; /* where to look for a free place */

/* Guards that nobody needs, but that could not be freed at the time. */
#define GUARD_LEFT 1u
static uint32_t guards_left;

uint64_t mw_isolate_page(void)
{
	static uint64_t page;

	if (!page)
		page = (uint64_t)sysconf(_SC_PAGESIZE);
	return page;
}

uint64_t mw_isolate_page_after(uint64_t address)
{
	uint64_t page = mw_isolate_page();

	return (address + page - 1) / page * page;
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

/* From the beginning of a guard to the page in front of which it ends. */
static uint32_t guard_distance(const char *guard)
{
	return (uint32_t)(mw_isolate_page_after((uintptr_t)guard + GUARD_LEAST) - (uintptr_t)guard);
}

static bool block_count(void)
{
	uint32_t most = mw_profile.header->watch_max * MW_ISOLATE_BLOCKS;

	if (__atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED) <= most)
		return true;
	mw_isolate_freed();
	return false;
}

/* The number of a guard; 0 if there is none left. */
static uint32_t guard_add(void *guard)
{
	uint32_t first = __atomic_fetch_add(&guard_hint, 1, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < GUARDS_MAX; i++) {
		uint32_t n = (first + i) % GUARDS_MAX;
		uintptr_t free = 0;

		if (!__atomic_load_n(&guards[n], __ATOMIC_RELAXED) &&
		    __atomic_compare_exchange_n(&guards[n], &free, (uintptr_t)guard, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return n + 1;
	}
	return 0;
}

/*
 * A block that ends where a page begins, with enough for @bytes behind it. NULL if there is none.
 */
static char *guard_begin(uint64_t page, uint64_t bytes)
{
	char *guard = mw_next.malloc(GUARD_LEAST + page + bytes + 2 * MARGIN), *shrunk;
	size_t size;

	if (!guard)
		return NULL;
	size = guard_distance(guard) - WORD;
	shrunk = mw_next.realloc(guard, size);
	if (shrunk == guard && mw_next.malloc_usable_size(guard) == size)
		return guard;
	mw_next.free(shrunk ? shrunk : guard);
	return NULL;
}

/*
 * A block with a guard; NULL if there is none. The C library has no function that allocates at a
 * given address. But it keeps the size of each block in the word in front of it, with three flags,
 * and takes the smallest free block that is large enough. So who asks for all that is free behind
 * the guard, but for @spare bytes, gets just that, and gives back what it does not need. Should it
 * be different, for whatever reason, the block has another address.
 */
static void *guarded_allocate(uint64_t page, uint64_t bytes, size_t spare, uint32_t *ret_guard)
{
	char *guard = guard_begin(page, bytes), *wanted, *memory = NULL, *shrunk = NULL;
	size_t behind;

	if (!guard)
		return NULL;
	wanted = guard + guard_distance(guard);
	behind = *(const size_t *)(const void *)(wanted - WORD) & ~(size_t)7;
	if (behind > bytes + MARGIN)
		memory = mw_next.malloc(behind - WORD - spare);
	if (memory == wanted)
		shrunk = mw_next.realloc(memory, bytes);
	if (shrunk && shrunk == wanted && (*ret_guard = guard_add(guard)))
		return shrunk;
	mw_next.free(shrunk ? shrunk : memory);
	mw_next.free(guard);
	return NULL;
}

/*
 * All the memory behind the last block of the heap cannot be asked for, without making the heap
 * larger; elsewhere, there may be another block of nearly the same size, but hardly of the same.
 */
static void *guarded_allocate_by_size(uint64_t page, uint64_t bytes, uint32_t *ret_guard)
{
	void *memory = guarded_allocate(page, bytes, MARGIN, ret_guard);

	return memory ? memory : guarded_allocate(page, bytes, 0, ret_guard);
}

static void guards_free_left(void)
{
	if (mw_likely(!__atomic_load_n(&guards_left, __ATOMIC_RELAXED)) ||
	    !__atomic_exchange_n(&guards_left, 0, __ATOMIC_ACQUIRE))
		return;
	for (uint32_t n = 0; n < GUARDS_MAX; n++) {
		uintptr_t guard = __atomic_load_n(&guards[n], __ATOMIC_RELAXED);

		if (guard & GUARD_LEFT &&
		    __atomic_compare_exchange_n(&guards[n], &guard, 0, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			mw_next.free((void *)(guard & ~(uintptr_t)GUARD_LEFT));
	}
}

static void *block_refuse(void)
{
	mw_count(&mw_profile.header->watch_refused, 1);
	return NULL;
}

static void *block_allocate(size_t alignment, size_t size, uint32_t *ret_guard)
{
	uint64_t page = mw_isolate_page();
	uint64_t bytes = mw_isolate_page_after(size + (size == 0)) + TAIL_BYTES;
	void *memory = NULL;

	guards_free_left();
	if (!alignment || alignment & (alignment - 1) || !block_count())
		return block_refuse();
	if (alignment <= page && mw_next.allocator == MW_HEAP_ALLOCATOR_GLIBC &&
	    mw_next.malloc_usable_size)
		memory = guarded_allocate_by_size(page, bytes, ret_guard);
	if (!memory &&
	    mw_next.posix_memalign(&memory, alignment > page ? alignment : page, bytes)) {
		mw_isolate_freed();
		return block_refuse();
	}
	return memory;
}

/*
 * Marked, because a signal handler may fork here, and before: the profile that has chosen the
 * object may be that of the parent.
 */
void *mw_isolate_allocate(size_t alignment, size_t size, uint32_t *ret_guard)
{
	struct mw_thread *thread = &mw_thread;
	void *memory = NULL;
	int saved = errno;

	*ret_guard = 0;
	if (!mw_thread_enter(thread, (uintptr_t)__builtin_frame_address(0)))
		return NULL;
	if (mw_runtime_owns_samples())
		memory = block_allocate(alignment, size, ret_guard);
	mw_thread_leave(thread);
	errno = saved;
	return memory;
}

void mw_isolate_unguard(uint32_t guard)
{
	int saved = errno;

	if (!guard || guard > GUARDS_MAX)
		return;
	if (mw_thread.interrupts) {
		__atomic_fetch_or(&guards[guard - 1], GUARD_LEFT, __ATOMIC_RELAXED);
		__atomic_fetch_add(&guards_left, 1, __ATOMIC_RELEASE);
		return;
	}
	mw_next.free((void *)__atomic_exchange_n(&guards[guard - 1], 0, __ATOMIC_RELAXED));
	errno = saved;
}

void mw_isolate_freed(void)
{
	__atomic_fetch_sub(&blocks, 1, __ATOMIC_RELAXED);
}

void mw_isolate_clear(void)
{
	blocks = 0;
	memset(guards, 0, sizeof(guards));
	guards_left = 0;
}
