// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Scheduling policy and nice value of the calling thread.
 */
#include <sched.h>
#include <sys/resource.h>

#include "common/priority.h"

#define RAISED_NICE (-10)

/* What the user had chosen. */
static int chosen_policy = SCHED_OTHER;
static int chosen_nice;

enum mw_priority mw_priority_raise(void)
{
	struct sched_param real_time = { .sched_priority = sched_get_priority_min(SCHED_RR) };
	struct sched_param normal = { .sched_priority = 0 };

	chosen_policy = sched_getscheduler(0);
	chosen_nice = getpriority(PRIO_PROCESS, 0);
	if (!sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &real_time))
		return MW_PRIORITY_REAL_TIME;
	if (sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &normal) ||
	    setpriority(PRIO_PROCESS, 0, RAISED_NICE))
		return MW_PRIORITY_NORMAL;
	return MW_PRIORITY_RAISED;
}

void mw_priority_lower(void)
{
	struct sched_param normal = { .sched_priority = 0 };

	sched_setscheduler(0, chosen_policy, &normal);
	setpriority(PRIO_PROCESS, 0, chosen_nice);
}

const char *mw_priority_name(enum mw_priority priority)
{
	static const char *const names[] = { "real-time", "raised", "normal" };

	return names[priority];
}
