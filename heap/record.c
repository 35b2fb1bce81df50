/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The slow paths.
 */
#include <errno.h>

#include "bootstrap.h"
#include "figures.h"
#include "profile.h"
#include "record.h"
#include "runtime.h"
#include "samples.h"
#include "stacks.h"
#include "thread.h"
#include "unwind.h"

bool mw_record_due(size_t size)
{
	struct mw_thread *thread = &mw_thread;
	int saved = errno;
	bool due = false;

	mw_countdown_restore(size);
	thread->probe_hit = true;
	if (thread->probe || !mw_thread_enter(thread, (uintptr_t)__builtin_frame_address(0)))
		return false;
	if (mw_runtime_follow(thread))
		due = mw_countdown_expires(size);
	if (due)
		mw_countdown_restore(size);
	mw_thread_leave(thread);
	errno = saved;
	return due;
}

static void time_count(uint64_t begin)
{
	struct mw_heap_counters *counters = &mw_profile.header->counters;
	uint64_t took = mw_runtime_now() - begin;

	mw_count(&counters->sample_ns, took);
	if (took > counters->sample_ns_max)
		__atomic_store_n(&counters->sample_ns_max, took, __ATOMIC_RELAXED);
}

static void allocation_sample(struct mw_thread *thread, const void *address, size_t size,
			      enum mw_heap_source source)
{
	uint64_t frames[MW_HEAP_DEPTH_MAX];
	struct mw_sample_birth birth = {
		.address = (uintptr_t)address,
		.size = size,
		.rate = thread->rate,
		.time_ns = mw_runtime_now(),
		.tid = thread->tid,
		.source = source,
	};
	uint32_t depth, flags;

	depth = mw_unwind(thread, frames, mw_config.depth, &flags);
	birth.stack = mw_stack_intern(frames, depth, flags, birth.time_ns);
	mw_sample_add(&birth);
	time_count(birth.time_ns);
	mw_figures_follow(birth.time_ns);
}

void mw_record_allocation(const void *address, size_t size, enum mw_heap_source source)
{
	struct mw_thread *thread = &mw_thread;
	int saved = errno;

	if (!mw_thread_enter(thread, (uintptr_t)__builtin_frame_address(0)))
		return;
	/* The process may have forked in between, in a signal handler or in the allocator itself.
	 */
	if (mw_runtime_owns_samples() && thread->rate)
		allocation_sample(thread, address, size, source);
	mw_runtime_draw(thread);
	mw_thread_leave(thread);
	errno = saved;
}

bool mw_record_free(const void *address)
{
	int saved = errno;

	if (mw_bootstrap_owns(address))
		return false;
	if (mw_unlikely(mw_thread.probe == address)) {
		mw_thread.probe_hit = true;
		return true;
	}
	/* Also when the thread is busy: a signal handler may free a sample. */
	if (mw_runtime_owns_samples() && !mw_sample_free(address))
		mw_count(&mw_profile.header->counters.false_lookups, 1);
	errno = saved;
	return true;
}

uint32_t mw_record_moving(const void *address)
{
	uint32_t slot;

	if (!mw_runtime_owns_samples())
		return MW_RECORD_NO_SLOT;
	if (mw_sample_detach(address, &slot))
		return slot;
	mw_count(&mw_profile.header->counters.false_lookups, 1);
	return MW_RECORD_NO_SLOT;
}

void mw_record_moved(uint32_t slot, bool freed)
{
	int saved = errno;

	if (slot == MW_RECORD_NO_SLOT || !mw_runtime_owns_samples())
		return;
	if (freed)
		mw_sample_detached_free(slot);
	else
		mw_sample_detached_restore(slot);
	errno = saved;
}
