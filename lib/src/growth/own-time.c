// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Counts the CPU time of the monitor.
 */
#include "growth/own-time.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/timemath.h"

static pid_t thread_id(void)
{
	return (pid_t)syscall(SYS_gettid);
}

void mw_own_time_init(struct mw_own_time *time, bool whole_thread)
{
	*time = (struct mw_own_time){
		.whole_thread = whole_thread,
		.thread = thread_id(),
		.since_ns = mw_clock(CLOCK_THREAD_CPUTIME_ID),
	};
}

void mw_own_time_begin(struct mw_own_time *time)
{
	pid_t thread = thread_id();

	if (!time->whole_thread || thread != time->thread)
		time->since_ns = mw_clock(CLOCK_THREAD_CPUTIME_ID);
	time->thread = thread;
}

void mw_own_time_end(struct mw_own_time *time)
{
	uint64_t now = mw_clock(CLOCK_THREAD_CPUTIME_ID);

	time->total_ns += now - time->since_ns;
	time->since_ns = now;
}

uint64_t mw_own_time_now(const struct mw_own_time *time)
{
	return time->total_ns + mw_clock(CLOCK_THREAD_CPUTIME_ID) - time->since_ns;
}

void mw_own_time_update(struct mw_own_time *time)
{
	if (time->whole_thread && time->thread == thread_id())
		mw_own_time_end(time);
}

void mw_own_time_add(struct mw_own_time *time, uint64_t ns)
{
	if (!time->whole_thread)
		time->total_ns += ns;
}
