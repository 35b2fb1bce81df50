/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What each thread has, and the guard against recursion.
 */
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "next.h"
#include "runtime.h"
#include "thread.h"

__thread struct mw_thread mw_thread MW_HIDDEN;

/*
 * The kernel keeps at least 128 MiB below the top of the main stack free of mappings that it
 * places itself, so a stack pointer in that range is on the main stack.
 */
#define MAIN_STACK_GAP (UINT64_C(128) << 20)

/* The end of the main thread's stack, set by the dynamic linker. */
extern void *__libc_stack_end;

/* False if the thread is on another stack. A forked child has the stack of whoever forked it. */
static bool stack_bounds_main(struct mw_thread *thread)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	uintptr_t high = (uintptr_t)__libc_stack_end, size = MAIN_STACK_GAP;
	struct rlimit limit;

	if (!getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur < size)
		size = limit.rlim_cur;
	if (here < high - size || here >= high)
		return false;
	thread->stack_high = high;
	thread->stack_low = high - size;
	return true;
}

void mw_thread_find_stack(struct mw_thread *thread)
{
	pthread_attr_t attributes;
	void *low;
	size_t size;

	if (thread->stack_sought)
		return;
	thread->stack_sought = stack_bounds_main(thread) || !thread->interrupts;
	/* The rest allocates, and frees. */
	if (thread->stack_high || thread->interrupts)
		return;
	thread->own = true;
	if (!mw_next.pthread_getattr_np(pthread_self(), &attributes)) {
		if (!pthread_attr_getstack(&attributes, &low, &size)) {
			thread->stack_low = (uintptr_t)low;
			thread->stack_high = (uintptr_t)low + size;
		}
		pthread_attr_destroy(&attributes);
	}
	thread->own = false;
}

/*
 * The C library holds the lock of the thread while it allocates here. If that is the first
 * allocation of the thread, its slow path would call this function again and wait for that lock,
 * so the bounds are asked for before.
 */
MW_EXPORT int pthread_getattr_np(pthread_t asked, pthread_attr_t *ret)
{
	struct mw_thread *thread = &mw_thread;

	if (mw_thread_enter(thread, (uintptr_t)__builtin_frame_address(0))) {
		mw_thread_find_stack(thread);
		mw_thread_leave(thread);
	}
	return mw_next.pthread_getattr_np(asked, ret);
}

/* Different in each thread, in each process, and after each fork. */
static uint64_t seed_make(const struct mw_thread *thread)
{
	uint64_t seed;
	const uint64_t *entropy = (const uint64_t *)getauxval(AT_RANDOM);

	if (mw_config.seed)
		return mw_config.seed + mw_runtime_thread_number();
	seed = mw_runtime_now();
	seed ^= (uint64_t)thread->tid << 40 ^ (uint64_t)(uintptr_t)thread;
	if (entropy)
		seed ^= entropy[0] + entropy[1];
	return seed;
}

void mw_thread_prepare(struct mw_thread *thread)
{
	if (mw_likely(thread->instance == mw_runtime.instance))
		return;
	thread->tid = (uint32_t)syscall(SYS_gettid);
	thread->pid = (uint32_t)getpid();
	mw_random_seed(&thread->random, seed_make(thread));
	mw_thread_find_stack(thread);
	thread->instance = mw_runtime.instance;
}

struct mw_random *mw_thread_random(struct mw_thread *thread)
{
	if (mw_unlikely(thread->instance != mw_runtime.instance))
		mw_random_seed(&thread->random, seed_make(thread));
	return &thread->random;
}

bool mw_thread_mark_is_left(const struct mw_thread *thread, uintptr_t mark, uintptr_t frame)
{
	return frame >= thread->stack_low && frame < thread->stack_high &&
	       mark >= thread->stack_low && mark < thread->stack_high && frame > mark;
}

bool mw_thread_enter(struct mw_thread *thread, uintptr_t frame)
{
	if (thread->busy && !mw_thread_mark_is_left(thread, thread->busy, frame))
		return false;
	thread->busy = frame;
	thread->interrupts = false;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return true;
}
