/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The slow paths.
 */
#include <errno.h>

#include "bootstrap.h"
#include "figures.h"
#include "isolate.h"
#include "profile.h"
#include "record.h"
#include "runtime.h"
#include "samples.h"
#include "stacks.h"
#include "thread.h"
#include "trace.h"
#include "unwind.h"
#include "watch.h"

/* What a slow path keeps. */
struct slow_path {
	struct mw_thread *thread;
	int error;    /* errno of the program */
	bool entered; /* false: in a signal handler that has interrupted the library */
};

/* In line, because the mark of the thread is the frame of the caller. */
static inline __attribute__((always_inline)) bool path_begin(struct slow_path *path)
{
	path->thread = &mw_thread;
	path->error = errno;
	path->entered = mw_thread_enter(path->thread, (uintptr_t)__builtin_frame_address(0));
	return path->entered;
}

static inline void path_end(const struct slow_path *path)
{
	if (path->entered)
		mw_thread_leave(path->thread);
	errno = path->error;
}

/* Takes @size off the countdown of the sampler. False if that contains a sample. */
static inline bool left_take(struct mw_thread *thread, size_t size)
{
	uint64_t *left = mw_countdown(thread), bytes = size + (size == 0);

	if (*left < bytes)
		return false;
	*left -= bytes;
	return true;
}

/* What the library itself allocates is in no trace. */
static inline unsigned int trace_due(const struct mw_thread *thread)
{
	return thread->traced && !thread->own ? MW_DUE_TRACE : 0;
}

static __attribute__((noinline)) unsigned int due_find(struct mw_thread *thread, size_t size,
						       bool interrupts)
{
	struct slow_path path;
	unsigned int due = 0;
	uint32_t shift;

	if (thread->probe)
		return MW_DUE_SAMPLE;
	if (!path_begin(&path))
		return trace_due(thread);
	if (interrupts)
		mw_thread_interrupts(thread);
	if (mw_runtime_follow(thread) && !left_take(thread, size)) {
		due = MW_DUE_SAMPLE;
		if (mw_isolate_chooses(size, &thread->random, &shift))
			due |= MW_DUE_ISOLATE | shift << MW_DUE_SHIFT;
	}
	path_end(&path);
	return due | trace_due(thread);
}

/*
 * A signal handler has allocated between the countdown and the slow path. The countdown was not
 * below 0 for it, but very large, so it took the fast path, and its allocation is not in the trace.
 */
static __attribute__((noinline, cold)) void countdown_repair(struct mw_thread *thread)
{
	thread->countdown = 0;
	if (thread->traced)
		mw_trace_lose(&mw_trace.header->lost_nested);
}

static inline unsigned int due_of(size_t size, bool interrupts)
{
	struct mw_thread *thread = &mw_thread;

	mw_countdown_restore(size);
	if (mw_unlikely((int64_t)thread->countdown < 0))
		countdown_repair(thread);
	if (mw_likely(mw_trace_is_current(thread) && !thread->probe && left_take(thread, size)))
		return trace_due(thread);
	return due_find(thread, size, interrupts);
}

unsigned int mw_record_due(size_t size)
{
	return due_of(size, false);
}

unsigned int mw_record_due_mapping(size_t size)
{
	return due_of(size, true);
}

/* The thread follows before its first event, which may be a free. */
static __attribute__((noinline, cold)) void trace_join(struct mw_thread *thread)
{
	struct slow_path path;

	if (!path_begin(&path))
		return;
	mw_runtime_follow(thread);
	path_end(&path);
}

static inline unsigned int due_traced(struct mw_thread *thread)
{
	if (mw_unlikely(!mw_trace_is_current(thread) && mw_trace.wanted))
		trace_join(thread);
	return trace_due(thread);
}

unsigned int mw_record_due_traced(void)
{
	return due_traced(&mw_thread);
}

static void time_count(uint64_t begin)
{
	struct mw_heap_counters *counters = &mw_profile.header->counters;
	uint64_t took = mw_runtime_now() - begin;

	mw_count(&counters->sample_ns, took);
	if (took > counters->sample_ns_max)
		__atomic_store_n(&counters->sample_ns_max, took, __ATOMIC_RELAXED);
}

static bool allocation_sample(struct mw_thread *thread, unsigned int due, const void *address,
			      size_t size, enum mw_heap_source source)
{
	uint64_t frames[MW_HEAP_DEPTH_MAX];
	struct mw_sample_birth birth = {
		.address = (uintptr_t)address,
		.size = size,
		.rate = thread->rate,
		.time_ns = mw_runtime_now(),
		.tid = thread->tid,
		.source = source,
		.guard = due >> MW_DUE_GUARD,
	};
	uint32_t depth, flags;
	bool stored;

	depth = mw_unwind(thread, frames, mw_config.depth, &flags);
	if (source == MW_HEAP_SOURCE_MMAP)
		flags |= MW_HEAP_STACK_MMAP;
	birth.stack = mw_stack_intern(frames, depth, flags, birth.time_ns);
	/* What the program has advised for mappings of its own stays. */
	if (due & MW_DUE_ISOLATE && source != MW_HEAP_SOURCE_MMAP)
		birth.watch = mw_watch_begin(&birth, due >> MW_DUE_SHIFT & 0xff, &thread->random);
	stored = mw_sample_add(&birth);
	if (!stored) {
		mw_isolate_unguard(birth.guard);
		mw_watch_end(birth.watch, birth.address, size);
	}
	time_count(birth.time_ns);
	/* The next allocation brings them. */
	if (!thread->interrupts)
		mw_figures_follow(birth.time_ns);
	return stored;
}

bool mw_record_sample(unsigned int due, const void *address, size_t size,
		      enum mw_heap_source source)
{
	struct mw_thread *thread = &mw_thread;
	struct slow_path path;
	bool stored = false;

	if (mw_unlikely(thread->probe)) {
		thread->probe = (void *)address;
		return false;
	}
	if (!path_begin(&path))
		return false;
	if (source == MW_HEAP_SOURCE_MMAP)
		mw_thread_interrupts(thread);
	/* The process may have forked in between, in a signal handler or in the allocator itself.
	 */
	if (mw_runtime_owns_samples() && thread->rate)
		stored = allocation_sample(thread, due, address, size, source);
	mw_runtime_draw(thread);
	path_end(&path);
	return stored;
}

void mw_record_refuse(void)
{
	struct slow_path path;

	if (path_begin(&path) && mw_runtime_owns_samples())
		mw_runtime_draw(path.thread);
	path_end(&path);
}

/*
 * A free is tracked also if the thread is busy, because a signal handler may free a sample. If it
 * is not, it is marked: a signal handler may fork here, too.
 */
static __attribute__((noinline)) void sample_free(const void *address)
{
	struct slow_path path;

	path_begin(&path);
	if (mw_runtime_owns_samples() && !mw_sample_free(address))
		mw_count(&mw_profile.header->counters.false_lookups, 1);
	path_end(&path);
}

bool mw_record_free(const void *address, const void *frame)
{
	struct mw_thread *thread = &mw_thread;

	if (!address)
		return true;
	if (mw_bootstrap_owns(address))
		return false;
	if (mw_unlikely(thread->probe == address)) {
		thread->probe_hit = true;
		return true;
	}
	if (due_traced(thread))
		mw_trace_free(thread, address, 0, frame);
	if (mw_trace_may_be_sample(address))
		sample_free(address);
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
	uint64_t moving = MW_RECORD_NOT_MOVING;
	struct slow_path path;
	uint32_t slot;

	path_begin(&path);
	if (mw_runtime_owns_samples()) {
		if (mw_sample_detach(address, &slot))
			moving = slot_name(slot);
		else
			mw_count(&mw_profile.header->counters.false_lookups, 1);
	}
	path_end(&path);
	return moving;
}

void mw_record_moved(uint64_t moving, bool freed)
{
	struct slow_path path;

	if (moving == MW_RECORD_NOT_MOVING)
		return;
	path_begin(&path);
	if (moving_is_valid(moving)) {
		if (freed)
			mw_sample_detached_free((uint32_t)moving);
		else
			mw_sample_detached_restore((uint32_t)moving);
	}
	path_end(&path);
}

bool mw_record_shrunk(uint64_t moving, const void *address, size_t size)
{
	struct slow_path path;
	bool kept = false;

	if (moving == MW_RECORD_NOT_MOVING)
		return false;
	path_begin(&path);
	if (moving_is_valid(moving))
		kept = mw_sample_detached_shrink((uint32_t)moving, (uintptr_t)address, size,
						 mw_thread_random(path.thread));
	path_end(&path);
	return kept;
}
