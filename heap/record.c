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

static bool allocation_sample(struct mw_thread *thread, const void *address, size_t size,
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
	bool stored;

	depth = mw_unwind(thread, frames, mw_config.depth, &flags);
	if (source == MW_HEAP_SOURCE_MMAP)
		flags |= MW_HEAP_STACK_MMAP;
	birth.stack = mw_stack_intern(frames, depth, flags, birth.time_ns);
	stored = mw_sample_add(&birth);
	time_count(birth.time_ns);
	mw_figures_follow(birth.time_ns);
	return stored;
}

bool mw_record_allocation(const void *address, size_t size, enum mw_heap_source source)
{
	struct mw_thread *thread = &mw_thread;
	int saved = errno;
	bool stored = false;

	if (!mw_thread_enter(thread, (uintptr_t)__builtin_frame_address(0)))
		return false;
	/* The process may have forked in between, in a signal handler or in the allocator itself.
	 */
	if (mw_runtime_owns_samples() && thread->rate)
		stored = allocation_sample(thread, address, size, source);
	mw_runtime_draw(thread);
	mw_thread_leave(thread);
	errno = saved;
	return stored;
}

/*
 * A free is tracked also if the thread is busy, because a signal handler may free a sample. If it
 * is not, it is marked: a signal handler may fork here, too.
 */
bool mw_record_free(const void *address)
{
	struct mw_thread *thread = &mw_thread;
	int saved = errno;
	bool entered;

	if (!address)
		return true;
	if (mw_bootstrap_owns(address))
		return false;
	if (mw_unlikely(thread->probe == address)) {
		thread->probe_hit = true;
		return true;
	}
	entered = mw_thread_enter(thread, (uintptr_t)__builtin_frame_address(0));
	if (mw_runtime_owns_samples() && !mw_sample_free(address))
		mw_count(&mw_profile.header->counters.false_lookups, 1);
	if (entered)
		mw_thread_leave(thread);
	errno = saved;
	return true;
}

/* A slot, and the instance of the profile to which it belongs in the upper half. */
static uint64_t slot_name(uint32_t slot)
{
	return (uint64_t)mw_runtime.instance << 32 | slot;
}

/* A process that was forked in between has no such sample. */
static bool moving_is_valid(uint64_t moving)
{
	return mw_runtime_owns_samples() && moving == slot_name((uint32_t)moving);
}

uint64_t mw_record_moving(const void *address)
{
	struct mw_thread *thread = &mw_thread;
	bool entered = mw_thread_enter(thread, (uintptr_t)__builtin_frame_address(0));
	uint64_t moving = MW_RECORD_NOT_MOVING;
	uint32_t slot;

	if (mw_runtime_owns_samples()) {
		if (mw_sample_detach(address, &slot))
			moving = slot_name(slot);
		else
			mw_count(&mw_profile.header->counters.false_lookups, 1);
	}
	if (entered)
		mw_thread_leave(thread);
	return moving;
}

void mw_record_moved(uint64_t moving, bool freed)
{
	struct mw_thread *thread = &mw_thread;
	int saved = errno;
	bool entered;

	if (moving == MW_RECORD_NOT_MOVING)
		return;
	entered = mw_thread_enter(thread, (uintptr_t)__builtin_frame_address(0));
	if (moving_is_valid(moving)) {
		if (freed)
			mw_sample_detached_free((uint32_t)moving);
		else
			mw_sample_detached_restore((uint32_t)moving);
	}
	if (entered)
		mw_thread_leave(thread);
	errno = saved;
}

bool mw_record_shrunk(uint64_t moving, const void *address, size_t size)
{
	struct mw_thread *thread = &mw_thread;
	bool entered, kept = false;
	int saved = errno;

	if (moving == MW_RECORD_NOT_MOVING)
		return false;
	entered = mw_thread_enter(thread, (uintptr_t)__builtin_frame_address(0));
	if (moving_is_valid(moving))
		kept = mw_sample_detached_shrink((uint32_t)moving, (uintptr_t)address, size,
						 &thread->random);
	if (entered)
		mw_thread_leave(thread);
	errno = saved;
	return kept;
}
