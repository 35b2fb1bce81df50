// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Perf events of the CPU clock. Their timer is relative to the moment at which the event is
 * enabled, so this is done just after a multiple of the period.
 */
#include "loader/metronome.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/timemath.h"

/* Longer periods are divided, so that nobody waits long for a multiple. */
#define LONGEST_NS 10000000ULL

/* How late the timer may be, and how often to try until it is not. */
#define LATE_NS	 20000ULL
#define ATTEMPTS 8

/* Waits without sleeping for the last part, because waking up takes time. */
#define SPIN_NS	   150000ULL
#define NS_PER_SEC 1000000000ULL

/* @period_ns, or the longest part of it by whole numbers that is not too long. */
static uint64_t divide_period(uint64_t period_ns)
{
	uint64_t parts = (period_ns + LONGEST_NS - 1) / LONGEST_NS;

	while (period_ns % parts)
		parts++;
	return period_ns / parts;
}

/*
 * An event that excludes everything still has its timer, but the kernel makes no sample when it
 * expires, and does not limit its rate.
 */
static int event_open(unsigned int cpu, uint64_t period_ns)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.disabled = 1,
		.exclude_user = 1,
		.exclude_kernel = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void wait_until(uint64_t time_ns)
{
	uint64_t wake_ns = time_ns - SPIN_NS;
	struct timespec until = {
		.tv_sec = (time_t)(wake_ns / NS_PER_SEC),
		.tv_nsec = (long)(wake_ns % NS_PER_SEC),
	};

	if (mw_clock(CLOCK_MONOTONIC) < wake_ns)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	while (mw_clock(CLOCK_MONOTONIC) < time_ns)
		;
}

int mw_metronome_open(unsigned int cpu, uint64_t period_ns)
{
	uint64_t part_ns = divide_period(period_ns), due_ns;
	int attempts = ATTEMPTS, fd;

	for (;;) {
		fd = event_open(cpu, part_ns);
		if (fd < 0)
			return fd;
		due_ns = (mw_clock(CLOCK_MONOTONIC) / part_ns + 1) * part_ns;
		wait_until(due_ns);
		if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)) {
			close(fd);
			return -errno;
		}
		if (!--attempts || mw_clock(CLOCK_MONOTONIC) - due_ns < LATE_NS)
			return fd;
		close(fd);
	}
}
