/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What each thread has: its countdown, its random numbers and the bounds of its stack. It is
 * static thread-local storage, all zeros at first, so that a thread needs neither a hook when
 * it begins nor a destructor when it ends. The zero countdown sends the first allocation into
 * the slow path, which fills in the rest.
 */
#ifndef _MW_HEAP_THREAD_H
#define _MW_HEAP_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interval.h"

#define MW_HIDDEN      __attribute__((visibility("hidden")))
#define MW_EXPORT      __attribute__((visibility("default")))
#define mw_likely(x)   __builtin_expect(!!(x), 1)
#define mw_unlikely(x) __builtin_expect(!!(x), 0)

struct mw_trace_writer;

struct mw_thread {
	uint64_t countdown; /* bytes that can be allocated before the next sample */
	uint64_t rate;	    /* with which the countdown was drawn; 0: nothing is sampled */
	/* Address of the frame that is in the library's own code, 0: none. Stops recursion. */
	uintptr_t busy;
	struct mw_random random;
	uintptr_t stack_low; /* bounds of the stack; both 0: unknown */
	uintptr_t stack_high;
	uint32_t instance; /* for which mw_runtime.instance this was filled in */
	uint32_t tid;
	uint32_t pid; /* equal to tid in the main thread */
	/* Not NULL: operators.c tries something out. The next allocation puts its address here. */
	void *probe;
	bool probe_hit;	   /* this address was freed */
	bool stack_sought; /* the bounds of the stack were asked for; they stay after a fork */
	bool interrupts; /* the call may have interrupted the allocator, see mw_thread_interrupts()
			  */
	bool own;	 /* the library itself calls what allocates; that is in no trace */
	bool traced;	 /* every allocation takes the slow path: the countdown is 0 */
	uint64_t held;	 /* what the countdown would be otherwise */
	struct mw_trace_writer *writer; /* NULL: none yet */
	uintptr_t writing;		/* as @busy, while an event is being written */
};

extern __thread struct mw_thread mw_thread __attribute__((tls_model("initial-exec"))) MW_HIDDEN;

/*
 * Takes @size bytes off the countdown; true if that contains a sample, and then the countdown
 * has wrapped. A request of 0 bytes counts as one, so that it can be sampled too.
 */
static inline bool mw_countdown_expires(size_t size)
{
	uint64_t bytes = size + (size == 0);

#if defined(__x86_64__)
	bool expired;

	/* One instruction on memory; compilers make four of it. */
	__asm__("sub %2, %0" : "+m"(mw_thread.countdown), "=@ccb"(expired) : "r"(bytes));
	return expired;
#else
	return __builtin_sub_overflow(mw_thread.countdown, bytes, &mw_thread.countdown);
#endif
}

static inline void mw_countdown_restore(size_t size)
{
	mw_thread.countdown += size + (size == 0);
}

/*
 * Makes the thread's state valid for this process: random numbers, id, bounds of the stack.
 * Caller is busy.
 */
void mw_thread_prepare(struct mw_thread *thread);

/* Its random numbers, also if it is not prepared: a thread may unmap before it allocates. */
struct mw_random *mw_thread_random(struct mw_thread *thread);

/*
 * Marks the thread as being inside the library. False if it is already: the caller must not
 * sample then. A mark that longjmp() out of a signal handler has left behind is recognised by
 * its address, which is below the caller's frame, and ignored.
 */
bool mw_thread_enter(struct mw_thread *thread, uintptr_t frame);

/*
 * After mw_thread_enter(), for a function that signal handlers may call: the allocator must neither
 * be called nor asked, because the thread may hold one of its locks. Until the thread enters again.
 */
static inline void mw_thread_interrupts(struct mw_thread *thread)
{
	thread->interrupts = true;
}

/* If they are not known yet, asks for the bounds of the stack. Caller is busy. */
void mw_thread_find_stack(struct mw_thread *thread);

/* Whether longjmp() has left the mark @mark behind, see mw_thread_enter(). */
bool mw_thread_mark_is_left(const struct mw_thread *thread, uintptr_t mark, uintptr_t frame);

/* The countdown of the sampler. */
static inline uint64_t *mw_countdown(struct mw_thread *thread)
{
	return thread->traced ? &thread->held : &thread->countdown;
}

static inline void mw_thread_leave(struct mw_thread *thread)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	thread->busy = 0;
}

#endif
