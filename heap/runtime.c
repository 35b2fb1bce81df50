/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the library does in this process.
 */
#include <sys/auxv.h>
#include <unistd.h>

#include "bootstrap.h"
#include "clock.h"
#include "code.h"
#include "cpython.h"
#include "epoch.h"
#include "figures.h"
#include "filter.h"
#include "fork.h"
#include "index.h"
#include "lock.h"
#include "mappings.h"
#include "modules.h"
#include "next.h"
#include "operators.h"
#include "profile.h"
#include "runtime.h"
#include "samples.h"
#include "snapshot.h"
#include "stacks.h"
#include "thread.h"
#include "trace.h"
#include "unwind.h"
#include "watch.h"

/* A countdown that does not end. */
#define COUNTDOWN_NEVER (UINT64_C(1) << 62)

struct mw_runtime mw_runtime MW_HIDDEN = { .instance = 1 };

static uint32_t control_seen;
static uint64_t control_rate_seen;

uint64_t mw_runtime_now(void)
{
	return mw_clock_read(CLOCK_MONOTONIC);
}

uint64_t mw_runtime_thread_number(void)
{
	return __atomic_add_fetch(&mw_runtime.threads, 1, __ATOMIC_RELAXED);
}

bool mw_runtime_owns_samples(void)
{
	return mw_runtime.mode == MW_RUNTIME_ON && mw_fork_is_settled();
}

static void state_set(enum mw_heap_state state)
{
	struct mw_heap_header *header = mw_profile.header;

	header->state_ns = mw_runtime_now();
	__atomic_store_n(&header->state, state, __ATOMIC_RELEASE);
}

/* @rate 0: stop. */
static void sampling_set(uint64_t rate, enum mw_heap_began began)
{
	struct mw_heap_header *header = mw_profile.header;

	if (rate && header->began == MW_HEAP_BEGAN_NOT) {
		header->began_ns = mw_runtime_now();
		header->began = began;
	}
	if (rate)
		header->configured_rate = header->rate_bytes = rate;
	__atomic_store_n(&mw_runtime.rate, rate, __ATOMIC_RELAXED);
	state_set(rate				       ? MW_HEAP_STATE_ACTIVE
		  : header->began == MW_HEAP_BEGAN_NOT ? MW_HEAP_STATE_DORMANT
						       : MW_HEAP_STATE_STOPPED);
}

static int profile_begin(uint64_t rate, uint32_t parent_pid, enum mw_heap_began began)
{
	int rc = mw_profile_create(parent_pid);

	if (rc)
		return rc;
	rc = mw_index_grow();
	if (rc) {
		mw_config_log("index", -rc);
		mw_profile_abandon();
		return rc;
	}
	mw_figures_clear();
	mw_snapshot_clear();
	mw_watch_prepare();
	mw_epoch_clear();
	mw_profile.header->allocator = mw_next.allocator;
	mw_profile.header->depth_max = mw_config.depth;
	mw_profile.header->configured_rate = mw_config.rate;
	control_seen = MW_HEAP_CONTROL_NONE;
	control_rate_seen = 0;
	sampling_set(rate, began);
	rc = mw_profile_publish();
	if (rc)
		mw_profile_abandon();
	return rc;
}

static int fork_begin(void)
{
	int rc = mw_fork_begin();

	if (rc)
		mw_config_log("cannot follow forks", -rc);
	return rc;
}

/* Sets the library up. Before the C library has its environment, it is too early. */
static void runtime_begin(void)
{
	if (!environ || !mw_next_resolve() || !mw_lock_try(&mw_maintenance))
		return;
	if (mw_runtime.mode != MW_RUNTIME_NEW) {
		mw_lock_end(&mw_maintenance);
		return;
	}
	/* A privileged program must not write files where its caller says. */
	if (getauxval(AT_SECURE) || mw_config_read() || fork_begin() ||
	    profile_begin(mw_config.dormant ? 0 : mw_config.rate, 0, MW_HEAP_BEGAN_PROCESS_START))
		__atomic_store_n(&mw_runtime.mode, MW_RUNTIME_OFF, __ATOMIC_RELEASE);
	else
		__atomic_store_n(&mw_runtime.mode, MW_RUNTIME_ON, __ATOMIC_RELEASE);
	mw_trace_request(mw_config.trace, MW_HEAP_BEGAN_PROCESS_START);
	mw_lock_end(&mw_maintenance);
}

/* In a forked child: the samples so far are the parent's. */
static void runtime_continue(void)
{
	if (!mw_fork_claim())
		return;
	mw_lock_inherit(&mw_maintenance);
	mw_runtime.instance++;
	mw_trace_forget();
	mw_watch_forget();
	mw_profile_forget();
	mw_filter_clear();
	mw_index_clear();
	mw_samples_clear();
	mw_stacks_clear();
	mw_modules_clear();
	mw_cpython_clear();
	mw_codes_clear();
	mw_mappings_clear();
	if (mw_config.fork_stops ||
	    profile_begin(mw_runtime.rate, (uint32_t)getppid(), MW_HEAP_BEGAN_FORK))
		__atomic_store_n(&mw_runtime.mode, MW_RUNTIME_OFF, __ATOMIC_RELEASE);
	mw_fork_settle();
	mw_lock_end(&mw_maintenance);
}

/* What other processes ask for; mw_trace_follow() does the same for a trace. */
static void control_follow(void)
{
	struct mw_heap_header *header = mw_profile.header;
	uint32_t control = __atomic_load_n(&header->control, __ATOMIC_ACQUIRE);
	uint64_t rate = __atomic_load_n(&header->control_rate, __ATOMIC_RELAXED);

	if (mw_likely(control == control_seen && rate == control_rate_seen))
		return;
	control_seen = control;
	control_rate_seen = rate;
	if ((control & MW_HEAP_CONTROL_MASK) == MW_HEAP_CONTROL_START)
		sampling_set(rate ? rate : mw_config.rate, MW_HEAP_BEGAN_LATER);
	else if ((control & MW_HEAP_CONTROL_MASK) == MW_HEAP_CONTROL_STOP)
		sampling_set(0, MW_HEAP_BEGAN_NOT);
	__atomic_store_n(&header->control_seen, control, __ATOMIC_RELEASE);
}

void mw_runtime_draw(struct mw_thread *thread)
{
	thread->rate = __atomic_load_n(&mw_runtime.rate, __ATOMIC_RELAXED);
	*mw_countdown(thread) = thread->rate ? mw_interval_draw(&thread->random, thread->rate)
					     : MW_HEAP_CONTROL_BYTES;
}

void mw_runtime_raise(uint64_t rate)
{
	uint64_t raised = rate * 2;

	if (__atomic_compare_exchange_n(&mw_runtime.rate, &rate, raised, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		__atomic_store_n(&mw_profile.header->rate_bytes, raised, __ATOMIC_RELAXED);
}

bool mw_runtime_follow(struct mw_thread *thread)
{
	if (mw_unlikely(mw_runtime.mode == MW_RUNTIME_NEW))
		runtime_begin();
	if (mw_runtime.mode == MW_RUNTIME_ON && mw_unlikely(!mw_fork_is_settled()))
		runtime_continue();
	if (!mw_runtime_owns_samples()) {
		mw_trace_release(thread);
		thread->rate = 0;
		thread->countdown = mw_runtime.mode == MW_RUNTIME_OFF ? COUNTDOWN_NEVER
								      : MW_HEAP_CONTROL_BYTES;
		return false;
	}
	control_follow();
	mw_epoch_follow();
	mw_snapshot_follow();
	if (thread->instance != mw_runtime.instance) {
		/* After a fork, the writer was that of the parent. */
		mw_trace_release(thread);
		thread->writer = NULL;
		mw_thread_prepare(thread);
		thread->rate = 0;
	}
	mw_thread_find_stack(thread);
	/* A countdown that was drawn with an earlier rate is still good: its sample has that rate.
	 */
	if (!thread->rate || !mw_runtime.rate)
		mw_runtime_draw(thread);
	mw_trace_follow(thread);
	return thread->rate != 0;
}

__attribute__((constructor)) static void runtime_constructor(void)
{
	struct mw_thread *thread = &mw_thread;

	mw_next_resolve();
	/* What this library allocates itself is not sampled. */
	if (!mw_thread_enter(thread, (uintptr_t)__builtin_frame_address(0)))
		return;
	mw_operators_resolve();
	mw_runtime_follow(thread);
	mw_thread_leave(thread);
}

/* Not in a child of vfork() that calls exit() by mistake. */
__attribute__((destructor)) static void runtime_destructor(void)
{
	struct mw_thread *thread = &mw_thread;

	if (!mw_thread_enter(thread, (uintptr_t)__builtin_frame_address(0)))
		return;
	if (mw_runtime_owns_samples() && mw_profile.header->pid == (uint32_t)getpid()) {
		mw_epoch_exit();
		state_set(MW_HEAP_STATE_ENDED);
		mw_trace_exit();
		mw_snapshot_exit();
	}
	mw_thread_leave(thread);
}
