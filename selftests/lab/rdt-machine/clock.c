// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How fast the time of the guest passes.
 */
#include "clock.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <qemu-plugin.h>

static unsigned int slowdown = 1;

/* The main thread, which has the timers of all vCPUs, is above the vCPUs. */
static int schedule_thread(pid_t thread, unsigned int factor)
{
	struct sched_param param = { .sched_priority = 0 };

	if (factor == 1)
		return sched_setscheduler(thread, SCHED_OTHER, &param) ? errno : 0;
	param.sched_priority = thread == getpid() ? 2 : 1;
	return sched_setscheduler(thread, SCHED_FIFO, &param) ? errno : 0;
}

static int schedule_threads(unsigned int factor)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	int error = 0;

	if (!tasks)
		return errno;
	while (!error && (entry = readdir(tasks)))
		if (entry->d_name[0] != '.')
			error = schedule_thread(atoi(entry->d_name), factor);
	closedir(tasks);
	return error;
}

int clock_slow(unsigned int factor)
{
	__atomic_store_n(&slowdown, factor, __ATOMIC_RELAXED);
	qemu_plugin_slow_clocks(factor);
	return schedule_threads(factor);
}

uint64_t clock_host_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

void clock_wait(unsigned int ns)
{
	uint64_t factor = __atomic_load_n(&slowdown, __ATOMIC_RELAXED), begin = clock_host_ns();
	struct timespec wait = { .tv_nsec = ns * factor % 1000000000 };

	/* So that the processors of the host are free for other vCPUs. */
	if (factor > 1) {
		wait.tv_sec = ns * factor / 1000000000;
		nanosleep(&wait, NULL);
	}
	while (clock_host_ns() - begin < ns * factor)
		;
}
