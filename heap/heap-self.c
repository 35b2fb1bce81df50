/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the program itself can ask of its profile.
 */
#include <errno.h>
#include <string.h>

#include "heap-self.h"
#include "profile.h"
#include "runtime.h"
#include "thread.h"

/* Marks the thread as busy, if this process has a profile. A forked child gets its own first. */
static int self_enter(struct mw_thread *thread, uintptr_t frame)
{
	if (!mw_thread_enter(thread, frame))
		return -EBUSY;
	mw_runtime_follow(thread);
	if (mw_runtime_owns_samples())
		return 0;
	mw_thread_leave(thread);
	return -ENODEV;
}

/* The same request that another process makes through the file, followed at once. */
MW_EXPORT int memwatch_heap_self_control(int start, uint64_t rate)
{
	struct mw_thread *thread = &mw_thread;
	int rc = self_enter(thread, (uintptr_t)__builtin_frame_address(0));
	struct mw_heap_header *header = mw_profile.header;

	if (rc)
		return rc;
	__atomic_store_n(&header->control_rate, rate, __ATOMIC_RELAXED);
	__atomic_store_n(&header->control, start ? MW_HEAP_CONTROL_START : MW_HEAP_CONTROL_STOP,
			 __ATOMIC_RELEASE);
	mw_runtime_follow(thread);
	mw_thread_leave(thread);
	return 0;
}

MW_EXPORT int memwatch_heap_self_copy(void)
{
	struct mw_thread *thread = &mw_thread;
	int rc = self_enter(thread, (uintptr_t)__builtin_frame_address(0));
	struct mw_heap_header *header = mw_profile.header;
	uint64_t before;

	if (rc)
		return rc;
	before = __atomic_load_n(&header->snapshots, __ATOMIC_ACQUIRE);
	__atomic_fetch_add(&header->snapshot_wanted, 1, __ATOMIC_RELEASE);
	mw_runtime_follow(thread);
	rc = __atomic_load_n(&header->snapshots, __ATOMIC_ACQUIRE) == before ? -EIO : 0;
	mw_thread_leave(thread);
	return rc;
}

MW_EXPORT int memwatch_heap_self_read(struct memwatch_heap_self_stats *stats)
{
	struct mw_thread *thread = &mw_thread;
	int rc = self_enter(thread, (uintptr_t)__builtin_frame_address(0));
	const struct mw_heap_header *header = mw_profile.header;
	struct memwatch_heap_self_stats now;

	if (rc)
		return rc;
	now = (struct memwatch_heap_self_stats){
		.size = stats->size,
		.rate = mw_runtime.rate,
		.samples = header->counters.samples,
		.live_samples = header->live_samples,
		.live_bytes = header->live_bytes,
		.allocated_bytes = header->counters.allocated_bytes,
		.freed_bytes = header->counters.freed_bytes,
		.lost_samples = header->counters.lost_samples,
	};
	mw_thread_leave(thread);
	memcpy(stats, &now, stats->size < sizeof(now) ? stats->size : sizeof(now));
	return 0;
}
