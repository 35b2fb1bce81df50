/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The trace: whether all allocations and frees are recorded, and the writers of the threads.
 *
 * While the trace is on, every call takes the slow path: the countdown of a traced thread stays 0
 * (what is left for the sampler is in thread->held), and each counter of the filter in front of
 * free() is one higher. So the fast path is the same as without a trace.
 */
#ifndef _MW_HEAP_TRACE_H
#define _MW_HEAP_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "filter.h"
#include "fork.h"
#include "runtime.h"
#include "thread.h"
#include "trace-file.h"
#include "trace-format.h"

#define MW_TRACE_PATH_SETS   64
#define MW_TRACE_PATH_WAYS   4
#define MW_TRACE_PATH_CHECKS 8
/* Cycles in a unit of time: 8, some nanoseconds. */
#define MW_TRACE_CYCLES_SHIFT 3
#define MW_TRACE_WRITERS_MAX  4096 /* threads that are traced at a time */

/*
 * A call stack that was met before: words of the stack, relative to the stack pointer of the
 * caller, that prove that it is the same one. See trace-site.c.
 */
struct mw_trace_path {
	uintptr_t ra;	/* 0: empty */
	uint32_t epoch; /* of mw_module_epoch */
	uint32_t site;
	uint32_t reach; /* bytes above the stack pointer that are looked at */
	uint16_t checks;
	bool frame_pointer; /* the frame pointer must be at frame_distance, too */
	intptr_t frame_distance;
	struct {
		uint32_t offset;
		uint32_t relative; /* the value is relative to the stack pointer */
		uintptr_t value;
	} check[MW_TRACE_PATH_CHECKS];
};

/* What a thread needs to write events. Private memory; used again when its thread is gone. */
struct mw_trace_writer {
	uint8_t *at;		      /* where the next event begins; NULL: no chunk */
	uint8_t *end;		      /* no event may begin behind it */
	struct mw_trace_chunk *chunk; /* in the window; NULL: none */
	struct mw_trace_window window;
	uint64_t time;	   /* of the last event */
	uint32_t instance; /* of the trace that the chunk belongs to */
	uint32_t owner;	   /* id of the thread; 0: nobody */
	uint32_t tid;	   /* thread that wrote the last event */
	uint32_t stream;
	uint32_t sequence;
	struct mw_trace_slot slots[MW_TRACE_SLOTS];
	uint32_t paths_replaced; /* chooses the way that is replaced next */
	struct mw_trace_path paths[MW_TRACE_PATH_SETS][MW_TRACE_PATH_WAYS];
};

struct mw_trace {
	uint32_t instance; /* changes with each trace; 0: off */
	uint32_t filter;   /* odd: each counter of the filter is one higher */
	bool wanted;
	uint32_t clock; /* enum mw_trace_clock */
	uint32_t depth; /* frames of a site */
	uint32_t began; /* enum mw_heap_began of the next trace */
	uint32_t streams;
	struct mw_trace_header *header; /* never NULL */
};

extern struct mw_trace mw_trace __attribute__((visibility("hidden")));

/*
 * Makes the thread follow what is wanted, by the environment or by another process; begins or ends
 * the trace. Caller is busy.
 */
void mw_trace_follow(struct mw_thread *thread);

/* The thread is traced no more. */
void mw_trace_release(struct mw_thread *thread);

/* It is wanted, or not any more. */
void mw_trace_request(bool on, uint32_t began);

/* The program ends. */
void mw_trace_exit(void);

/* After a fork: the trace is the parent's. Only while no other thread runs. */
void mw_trace_forget(void);

/* After a fork inside the recorder, which will go on: it finds private memory. */
void mw_trace_detach(void);

/* An event of @thread that cannot be recorded. */
void mw_trace_lose(uint64_t *counter);

/*
 * The thread is being traced, and its writer belongs to this trace. After a fork, another thread
 * may have unmapped the writers of the parent.
 */
static inline bool mw_trace_is_current(const struct mw_thread *thread)
{
	return thread->traced && thread->instance == mw_runtime.instance && thread->writer &&
	       thread->writer->instance == __atomic_load_n(&mw_trace.instance, __ATOMIC_RELAXED) &&
	       mw_fork_is_settled();
}

/* False: @address is no live sample, while the trace is on. */
static inline bool mw_trace_may_be_sample(const void *address)
{
	uint32_t before = __atomic_load_n(&mw_trace.filter, __ATOMIC_ACQUIRE);
	uint8_t count = mw_filter_count(address);

	/* The counter is one higher only if the filter was raised before and after it was read. */
	if (before & 1 && before == __atomic_load_n(&mw_trace.filter, __ATOMIC_ACQUIRE))
		return count != 1;
	return count != 0;
}

/*
 * The time in units of the trace. It is read when everything before it is done: when the allocator
 * has given the memory out, and when the load is done that found the address that is to be freed.
 */
static inline uint64_t mw_trace_now(void)
{
#if defined(__x86_64__)
	if (mw_likely(mw_trace.clock == MW_TRACE_CLOCK_CYCLES)) {
		__builtin_ia32_lfence();
		return __builtin_ia32_rdtsc() >> MW_TRACE_CYCLES_SHIFT;
	}
#endif
	return mw_runtime_now();
}

struct mw_trace_moment mw_trace_moment_now(void);

#endif
