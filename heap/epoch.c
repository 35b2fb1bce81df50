/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Epochs: at the end of each, it is found out which watched objects were touched in it.
 *
 * The accessed bits of the pages are read, and those that are set are cleared. An access after a
 * bit was read as clear is found in the next epoch, and one between reading a set bit and clearing
 * it gets the time that is read in between. So none is missed.
 */
#include <sys/mman.h>

#include "clock.h"
#include "config.h"
#include "epoch.h"
#include "lock.h"
#include "populate.h"
#include "profile.h"
#include "runtime.h"
#include "smaps.h"
#include "thread.h"
#include "watch.h"

/*
 * How long an epoch is, unless it is configured. The kernel walks all page tables of the process at
 * its end, so it is longer by so much than that has taken.
 */
#define EPOCH_NS     UINT64_C(10000000000)
#define TIMES_LONGER 200

static struct mw_lock epoch_lock;
static uint64_t epoch_due_ns;

/* Only while the lock is held. */
static struct mw_smaps epoch_smaps;
static struct walk {
	struct mw_watch_pages pages[MW_ISOLATE_MAX];
	uint32_t count;
	uint32_t at;		      /* the watch whose mappings are next */
	uint64_t covered;	      /* its bytes that were seen so far */
	bool is_joined;		      /* a mapping has more than its pages */
	struct mw_smaps_mapping seen; /* what is known of it */
	uint64_t after_ns;	      /* when the last epoch's end began */
} walk;

/*
 * Accessed bits are not cleared in pages that a forked child has, too. So the child's copy is made
 * now, without a change of the content. This must not wait for a handler of userfaultfd, which may
 * be this thread.
 */
static bool pages_clear(const struct mw_watch_pages *pages, const struct mw_smaps_mapping *seen)
{
	void *begin = (void *)(uintptr_t)pages->begin;
	uint64_t bytes = pages->end - pages->begin;

	if (seen->is_shared && (seen->is_followed || mw_populate(begin, bytes)))
		return false;
	return !madvise(begin, bytes, MADV_COLD);
}

/* All mappings of a watch were seen. */
static void watch_finish(void)
{
	const struct mw_watch_pages *pages = &walk.pages[walk.at++];

	if (walk.is_joined || walk.covered != pages->end - pages->begin) {
		mw_watch_lose(pages);
	} else if (walk.seen.is_referenced) {
		mw_watch_touched(pages, walk.after_ns, mw_runtime_now());
		if (!pages_clear(pages, &walk.seen))
			mw_watch_lose(pages);
	}
	walk.covered = 0;
	walk.is_joined = false;
	walk.seen = (struct mw_smaps_mapping){ 0 };
}

static void mapping_add(const struct mw_watch_pages *pages, const struct mw_smaps_mapping *mapping)
{
	if (mapping->start < pages->begin || mapping->end > pages->end)
		walk.is_joined = true;
	walk.covered += mapping->end - mapping->start;
	walk.seen.is_referenced |= mapping->is_referenced;
	walk.seen.is_shared |= mapping->is_shared;
	walk.seen.is_followed |= mapping->is_followed;
}

static void mappings_walk(void)
{
	struct mw_smaps_mapping mapping;

	while (walk.at < walk.count && mw_smaps_next(&epoch_smaps, &mapping)) {
		while (walk.at < walk.count && walk.pages[walk.at].begin < mapping.end) {
			const struct mw_watch_pages *pages = &walk.pages[walk.at];

			if (pages->end > mapping.start)
				mapping_add(pages, &mapping);
			if (pages->end > mapping.end)
				break;
			watch_finish();
		}
	}
	while (walk.at < walk.count)
		watch_finish();
}

/* @took: CPU time of the last epoch's end. */
static uint64_t epoch_length(uint64_t took)
{
	if (mw_config.epoch_ns)
		return mw_config.epoch_ns;
	return took * TIMES_LONGER > EPOCH_NS ? took * TIMES_LONGER : EPOCH_NS;
}

/* Caller holds the lock. */
static void epoch_end(uint64_t now)
{
	struct mw_heap_header *header = mw_profile.header;
	uint64_t cpu = mw_clock_read(CLOCK_THREAD_CPUTIME_ID), took;

	walk.at = 0;
	walk.count = mw_watch_list(walk.pages);
	if (walk.count && mw_smaps_open(&epoch_smaps)) {
		epoch_due_ns = now + epoch_length(0);
		return;
	}
	if (walk.count) {
		mappings_walk();
		mw_smaps_close(&epoch_smaps);
	}
	walk.after_ns = now;
	mw_watch_relax(now);
	took = mw_clock_read(CLOCK_THREAD_CPUTIME_ID) - cpu;
	header->epoch_cpu_ns += took;
	header->epoch_before_ns = header->epoch_ns;
	__atomic_store_n(&header->epoch_ns, mw_runtime_now(), __ATOMIC_RELEASE);
	__atomic_store_n(&header->epochs, header->epochs + 1, __ATOMIC_RELEASE);
	epoch_due_ns = now + epoch_length(took);
}

static bool epoch_is_due(uint64_t now)
{
	return now >= __atomic_load_n(&epoch_due_ns, __ATOMIC_RELAXED);
}

void mw_epoch_follow(void)
{
	if (mw_likely(!mw_profile.header->watch_max) || !epoch_is_due(mw_runtime_now()) ||
	    !mw_lock_try(&epoch_lock))
		return;
	/* Another thread may have ended it meanwhile. */
	if (epoch_is_due(mw_runtime_now()))
		epoch_end(mw_runtime_now());
	mw_lock_end(&epoch_lock);
}

void mw_epoch_exit(void)
{
	if (!mw_profile.header->watch_max || !mw_lock_try(&epoch_lock))
		return;
	epoch_end(mw_runtime_now());
	mw_lock_end(&epoch_lock);
}

void mw_epoch_clear(void)
{
	epoch_lock.taken = 0;
	walk.after_ns = mw_runtime_now();
	epoch_due_ns = walk.after_ns + epoch_length(0);
}
