/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The slow paths: what happens when a countdown expires, and when an address that passed the
 * filter is freed. The entry points (entry.c, operators.c) call these functions last and directly,
 * around the call of the next allocator.
 */
#ifndef _MW_HEAP_RECORD_H
#define _MW_HEAP_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile-format.h"
#include "thread.h"
#include "trace-write.h"

#define MW_DUE_SAMPLE  1u /* the allocation is to be sampled */
#define MW_DUE_TRACE   2u /* it is to be written to the trace */
#define MW_DUE_ISOLATE 4u /* it is to be sampled and watched, see isolate.h */
#define MW_DUE_SHIFT   8  /* eight bits: the shift of the watch */
#define MW_DUE_GUARD   16 /* the bits above: its guard */

/*
 * The countdown of this thread has wrapped by @size. Puts it right, and returns what is to be done
 * with the allocation, MW_DUE_*: then mw_record_allocation() follows if it succeeded; if it
 * failed, nothing does, because an object that does not exist does not use up the countdown.
 */
unsigned int mw_record_due(size_t size);

/* The same for a mapping, which a signal handler may make that has interrupted the allocator. */
unsigned int mw_record_due_mapping(size_t size);

/* The same for a call that has not changed the countdown: MW_DUE_TRACE or nothing. */
unsigned int mw_record_due_traced(void);

/*
 * What was due to be sampled does not count after all. The countdown begins anew: to take the rest
 * of it for what comes next would sample that too often.
 */
void mw_record_refuse(void);

/* The second half of mw_record_allocation(). */
bool mw_record_sample(unsigned int due, const void *address, size_t size,
		      enum mw_heap_source source);

/*
 * The allocation succeeded. Leaves errno alone. False if there is no sample of it, because it was
 * not due, there was no room, or the process was forked meanwhile. See trace-write.h for @frame.
 */
static inline bool mw_record_allocation(unsigned int due, const void *address, size_t size,
					enum mw_heap_source source, const void *frame)
{
	if (due & MW_DUE_TRACE)
		mw_trace_allocation(&mw_thread, address, size, frame);
	return mw_unlikely(due & MW_DUE_SAMPLE) && mw_record_sample(due, address, size, source);
}

/* @address is about to be freed and passed the filter. False: do not free it (bootstrap heap). */
bool mw_record_free(const void *address, const void *frame);

#define MW_RECORD_NOT_MOVING UINT64_MAX

/*
 * @address is about to be reallocated and passed the filter: takes its sample aside, and returns
 * what names it, or MW_RECORD_NOT_MOVING. mw_record_moved() follows, when it is known what
 * happened.
 */
uint64_t mw_record_moving(const void *address);
void mw_record_moved(uint64_t moving, bool freed);

/*
 * The same for a mapping of which only @size bytes at @address are left. False if it has no sample
 * any more.
 */
bool mw_record_shrunk(uint64_t moving, const void *address, size_t size);

#endif
