/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The objects of which it is known when they were touched last.
 *
 * A watch is in two tables. The private one says to whom it belongs at this moment; the one in the
 * profile is for readers. Nobody waits: who frees an object whose watch is held leaves a mark, and
 * the holder ends it.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config.h"
#include "isolate.h"
#include "lock.h"
#include "profile.h"
#include "thread.h"
#include "watch.h"

/* The low bits of watch.state; the rest is a generation. */
#define FREE	    0u
#define MAKING	    1u
#define LIVE	    2u
#define HELD	    3u
#define DOOMED	    4u /* in addition to HELD */
#define STATE	    7u
#define STATE_SHIFT 3

/* sample.watch of an object that has a block and no watch. */
#define BLOCK_ONLY UINT16_MAX

/* Most pages of one watch; a multiple of it is what the largest objects with a block have. */
#define PART_PAGES 16

/*
 * To begin and to end a watch takes some system calls and changes the heap, up to 300 us in all. So
 * samples are chosen less often when there are so many at once, or more than one in such a time.
 */
#define BUDGET	       1000u
#define BUDGET_EACH_NS UINT64_C(100000000)

#define SHIFT_MAX      32u

static struct watch {
	uint64_t state;
	uint64_t address;
	uint64_t begin;
	uint32_t bytes;
	uint32_t shift;
} watches[MW_ISOLATE_MAX];

static uint32_t watch_count; /* that are not free */
static uint32_t watch_hint;  /* where to look for a free one */
static uint64_t budget_begin;
static uint32_t budget_used;
static struct mw_lock thin_lock;

static struct mw_heap_watch *file_at(uint32_t n)
{
	return mw_profile_at(MW_HEAP_CHUNK_WATCHES, (uint64_t)n * sizeof(struct mw_heap_watch));
}

/* As that of a sample. */
static void file_change(struct mw_heap_watch *file, uint32_t state)
{
	uint64_t generation = (file->state >> 2) + (state == MW_HEAP_SAMPLE_WRITING);

	__atomic_store_n(&file->state, generation << 2 | state, __ATOMIC_RELEASE);
	if (state == MW_HEAP_SAMPLE_WRITING)
		__atomic_thread_fence(__ATOMIC_RELEASE);
}

static uint64_t state_load(uint32_t n)
{
	return __atomic_load_n(&watches[n].state, __ATOMIC_ACQUIRE);
}

static bool state_swap(uint32_t n, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(&watches[n].state, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

static bool advise(uint64_t begin, uint64_t bytes, int advice)
{
	return !madvise((void *)(uintptr_t)begin, bytes, advice);
}

static uint32_t shift_now(void)
{
	return __atomic_load_n(&mw_profile.header->watch_shift, __ATOMIC_RELAXED);
}

static void shift_raise(uint32_t from)
{
	if (from < SHIFT_MAX)
		__atomic_compare_exchange_n(&mw_profile.header->watch_shift, &from, from + 1, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* False with the odds that a watch of @from does not become one of @to. */
static bool shift_keeps(uint32_t from, uint32_t to, struct mw_random *random)
{
	return from >= to || mw_random_unit(random) * (double)(UINT64_C(1) << (to - from)) < 1;
}

static void budget_refill(uint64_t now)
{
	uint64_t begin = __atomic_load_n(&budget_begin, __ATOMIC_RELAXED);
	uint64_t count = now > begin ? (now - begin) / BUDGET_EACH_NS : 0;
	uint32_t used = __atomic_load_n(&budget_used, __ATOMIC_RELAXED), left;

	if (!count ||
	    !__atomic_compare_exchange_n(&budget_begin, &begin, begin + count * BUDGET_EACH_NS,
					 false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	do {
		left = used > count ? used - (uint32_t)count : 0;
	} while (!__atomic_compare_exchange_n(&budget_used, &used, left, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
}

/* Once it is used up, a quarter of it is left until the next step. */
static void budget_count(uint64_t now)
{
	uint32_t used;

	budget_refill(now);
	used = __atomic_add_fetch(&budget_used, 1, __ATOMIC_RELAXED);
	if (used >= BUDGET &&
	    __atomic_compare_exchange_n(&budget_used, &used, used - BUDGET / 4, false,
					__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		shift_raise(shift_now());
}

void mw_watch_prepare(void)
{
	struct mw_heap_header *header = mw_profile.header;

	if (!mw_config.isolate || access("/proc/self/smaps", R_OK) ||
	    mw_profile_grow(MW_HEAP_CHUNK_WATCHES))
		return;
	header->watch_least = mw_isolate_has_blocks() ? 0 : MW_ISOLATE_OBJECT_MAX + 1;
	header->watch_max = mw_config.isolate;
}

static bool watch_claim(uint32_t *ret)
{
	uint32_t max = mw_profile.header->watch_max;
	uint32_t first = __atomic_fetch_add(&watch_hint, 1, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < max; i++) {
		uint32_t n = (first + i) % max;
		uint64_t state = state_load(n);

		if ((state & STATE) != FREE ||
		    !state_swap(n, state, ((state >> STATE_SHIFT) + 1) << STATE_SHIFT | MAKING))
			continue;
		__atomic_fetch_add(&watch_count, 1, __ATOMIC_RELAXED);
		*ret = n;
		return true;
	}
	return false;
}

/* The caller owns the watch: it is making it, or holds it. */
static void watch_free(uint32_t n)
{
	struct watch *watch = &watches[n];
	uint64_t generation = state_load(n) >> STATE_SHIFT;

	file_change(file_at(n), MW_HEAP_SAMPLE_FREE);
	advise(watch->begin, watch->bytes, MADV_NORMAL);
	__atomic_fetch_sub(&watch_count, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&watch->state, generation << STATE_SHIFT | FREE, __ATOMIC_RELEASE);
}

static bool watch_hold(uint32_t n, uint64_t generation)
{
	return state_swap(n, generation << STATE_SHIFT | LIVE, generation << STATE_SHIFT | HELD);
}

static void watch_release(uint32_t n, uint64_t generation)
{
	if (!state_swap(n, generation << STATE_SHIFT | HELD, generation << STATE_SHIFT | LIVE))
		watch_free(n);
}

/* Makes room: those that are left have the odds of a higher shift. */
static void watches_thin(struct mw_random *random)
{
	uint32_t shift;

	if (!mw_lock_try(&thin_lock))
		return;
	shift_raise(shift_now());
	shift = shift_now();
	for (uint32_t n = 0; n < mw_profile.header->watch_max; n++) {
		uint64_t generation = state_load(n) >> STATE_SHIFT;
		struct mw_heap_watch *file = file_at(n);

		if (watches[n].shift >= shift || !watch_hold(n, generation))
			continue;
		if (!shift_keeps(watches[n].shift, shift, random)) {
			watch_free(n);
			continue;
		}
		watches[n].shift = shift;
		file_change(file, MW_HEAP_SAMPLE_WRITING);
		file->shift = (uint16_t)shift;
		file_change(file, MW_HEAP_SAMPLE_LIVE);
		watch_release(n, generation);
	}
	mw_lock_end(&thin_lock);
}

/*
 * The pages of an object that are watched. A large one has no block, so its last page is left out:
 * the object behind it may be watched, too.
 */
static bool pages_choose(uint64_t address, uint64_t size, struct mw_random *random,
			 struct watch *ret)
{
	uint64_t page = mw_isolate_page(), first = mw_isolate_page_after(address) / page, pages;

	if (size <= MW_ISOLATE_OBJECT_MAX) {
		ret->begin = address;
		ret->bytes = (uint32_t)mw_isolate_page_after(size + (size == 0));
		return true;
	}
	if ((address + size) / page < first + 2)
		return false;
	pages = (address + size) / page - first - 1;
	if (pages > PART_PAGES) {
		first += (uint64_t)(mw_random_unit(random) * (double)(pages - PART_PAGES + 1));
		pages = PART_PAGES;
	}
	ret->begin = first * page;
	ret->bytes = (uint32_t)(pages * page);
	return true;
}

/*
 * Makes a mapping of the pages whose accessed bits are clear. The first page of a block is brought
 * into memory before, because MADV_COLD passes over pages that another processor has just brought
 * in.
 */
static bool pages_begin(const struct watch *pages, bool has_block)
{
	volatile char *first = (volatile char *)(uintptr_t)pages->begin;

	if (has_block)
		*first = *first;
	if (advise(pages->begin, pages->bytes, MADV_RANDOM) &&
	    advise(pages->begin, pages->bytes, MADV_COLD))
		return true;
	advise(pages->begin, pages->bytes, MADV_NORMAL);
	return false;
}

static void watch_publish(uint32_t n, const struct watch *pages, uint64_t size, uint64_t time_ns)
{
	uint64_t generation = state_load(n) >> STATE_SHIFT;
	struct mw_heap_watch *file = file_at(n);
	struct watch *watch = &watches[n];

	watch->address = pages->address;
	watch->begin = pages->begin;
	watch->bytes = pages->bytes;
	watch->shift = pages->shift;
	file_change(file, MW_HEAP_SAMPLE_WRITING);
	file->address = pages->address;
	file->time_ns = time_ns;
	file->begin = pages->begin;
	file->bytes = pages->bytes;
	file->shift = (uint16_t)pages->shift;
	file->flags = size > MW_ISOLATE_OBJECT_MAX ? MW_HEAP_WATCH_PART : 0;
	file->touched_ns = file->touched_after_ns = time_ns;
	file_change(file, MW_HEAP_SAMPLE_LIVE);
	__atomic_store_n(&watch->state, generation << STATE_SHIFT | LIVE, __ATOMIC_RELEASE);
}

uint16_t mw_watch_begin(const struct mw_sample_birth *birth, uint32_t shift,
			struct mw_random *random)
{
	bool has_block = birth->size <= MW_ISOLATE_OBJECT_MAX;
	uint16_t otherwise = has_block ? BLOCK_ONLY : 0;
	struct watch pages = { .address = birth->address };
	uint32_t n, max = mw_profile.header->watch_max;

	budget_count(birth->time_ns);
	if (__atomic_load_n(&watch_count, __ATOMIC_RELAXED) >= max)
		watches_thin(random);
	pages.shift = shift_now() > shift ? shift_now() : shift;
	if (!shift_keeps(shift, pages.shift, random))
		return otherwise;
	if (!pages_choose(birth->address, birth->size, random, &pages) || !watch_claim(&n)) {
		mw_count(&mw_profile.header->watch_refused, 1);
		return otherwise;
	}
	watches[n].bytes = 0;
	if (!pages_begin(&pages, has_block)) {
		mw_count(&mw_profile.header->watch_refused, 1);
		watch_free(n);
		return otherwise;
	}
	watch_publish(n, &pages, birth->size, birth->time_ns);
	return (uint16_t)(n + 1);
}

void mw_watch_stop(uint16_t watch, uint64_t address)
{
	uint32_t n = watch - 1u;
	uint64_t state;
	int saved = errno;

	if (!watch || watch > MW_ISOLATE_MAX)
		return;
	state = state_load(n);
	if (__atomic_load_n(&watches[n].address, __ATOMIC_RELAXED) != address)
		return;
	if ((state & STATE) == HELD) {
		if (state_swap(n, state, state | DOOMED))
			return;
		/* The holder let go in between. */
		state = (state & ~(uint64_t)STATE) | LIVE;
	}
	if ((state & STATE) == LIVE && watch_hold(n, state >> STATE_SHIFT))
		watch_free(n);
	errno = saved;
}

void mw_watch_end(uint16_t watch, uint64_t address, uint64_t size)
{
	if (!watch)
		return;
	if (size <= MW_ISOLATE_OBJECT_MAX)
		mw_isolate_freed();
	mw_watch_stop(watch, address);
}

/* Shell's sort, because qsort() allocates. */
static void pages_sort(struct mw_watch_pages *pages, uint32_t count)
{
	for (uint32_t gap = 511; gap > 0; gap /= 2) {
		for (uint32_t i = gap; i < count; i++) {
			struct mw_watch_pages moved = pages[i];
			uint32_t at = i;

			for (; at >= gap && pages[at - gap].begin > moved.begin; at -= gap)
				pages[at] = pages[at - gap];
			pages[at] = moved;
		}
	}
}

uint32_t mw_watch_list(struct mw_watch_pages *pages)
{
	uint32_t count = 0;

	for (uint32_t n = 0; n < mw_profile.header->watch_max; n++) {
		uint64_t state = state_load(n);

		if ((state & STATE) != LIVE)
			continue;
		pages[count].number = n;
		pages[count].generation = state >> STATE_SHIFT;
		pages[count].begin = watches[n].begin;
		pages[count].end = watches[n].begin + watches[n].bytes;
		count += state_load(n) == state;
	}
	pages_sort(pages, count);
	return count;
}

void mw_watch_touched(const struct mw_watch_pages *pages, uint64_t after_ns, uint64_t ns)
{
	struct mw_heap_watch *file = file_at(pages->number);

	if (!watch_hold(pages->number, pages->generation))
		return;
	/* A reader that sees the times of two epochs takes the last access for less exact. */
	__atomic_store_n(&file->touched_ns, ns, __ATOMIC_RELEASE);
	__atomic_store_n(&file->touched_after_ns,
			 after_ns > file->time_ns ? after_ns : file->time_ns, __ATOMIC_RELEASE);
	watch_release(pages->number, pages->generation);
}

void mw_watch_lose(const struct mw_watch_pages *pages)
{
	if (!watch_hold(pages->number, pages->generation))
		return;
	mw_count(&mw_profile.header->watch_lost, 1);
	watch_free(pages->number);
}

void mw_watch_relax(uint64_t now)
{
	uint32_t shift = shift_now();

	budget_refill(now);
	if (shift && __atomic_load_n(&budget_used, __ATOMIC_RELAXED) < BUDGET / 4 &&
	    __atomic_load_n(&watch_count, __ATOMIC_RELAXED) < mw_profile.header->watch_max / 4)
		__atomic_compare_exchange_n(&mw_profile.header->watch_shift, &shift, shift - 1,
					    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void mw_watch_forget(void)
{
	for (uint32_t n = 0; n < MW_ISOLATE_MAX; n++)
		if ((watches[n].state & STATE) != FREE && watches[n].bytes)
			advise(watches[n].begin, watches[n].bytes, MADV_NORMAL);
	memset(watches, 0, sizeof(watches));
	watch_count = watch_hint = budget_used = 0;
	budget_begin = 0;
	thin_lock.taken = 0;
	mw_isolate_clear();
}
