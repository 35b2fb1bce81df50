// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A period that lengthens itself, see stretch.h. Each tick counts what it costs, with
 * variables of its CPU only; a worker does the rest.
 */
#include <linux/kernel.h>
#include <linux/memwatch.h>
#include <linux/module.h>
#include <linux/workqueue.h>

#include "cost.h"
#include "cpu.h"
#include "fail.h"
#include "lock.h"
#include "notify.h"
#include "stretch.h"
#include "tick.h"

#define PPM_PER_PERCENT 10000

static uint tick_max_percent = MW_TICK_MAX_PERCENT;
module_param(tick_max_percent, uint, 0400);
MODULE_PARM_DESC(tick_max_percent,
		 "the period is doubled if ticks take more than this share of "
		 "the time of a CPU; 0: never (default " __stringify(MW_TICK_MAX_PERCENT) ")");

static void stretch_lengthen(struct work_struct *work);
static DECLARE_WORK(stretch_work, stretch_lengthen);

/* Guarded by mw_control_lock. */
static u32 times;	 /* that the period was doubled in this session */
static unsigned int why; /* the CPU for whose sake it was doubled last */
static u32 why_ppm;	 /* the share of its time that ticks took */

/* The CPU that spends the largest share of its time in ticks, of those that spend too much. */
static unsigned int stretch_find_cpu(u32 *ppm)
{
	unsigned int id, found = nr_cpu_ids;

	*ppm = 0;
	for_each_online_cpu (id) {
		const struct mw_cost *cost = &per_cpu(mw_cpu, id).cost;
		u32 share = READ_ONCE(cost->ppm);

		if (mw_cost_is_over(cost) && share > *ppm) {
			*ppm = share;
			found = id;
		}
	}
	return found;
}

static void stretch_announce(u64 before, u64 now)
{
	char reason[MW_STRETCH_REASON_LEN], text[MEMWATCH_NOTICE_TEXT_LEN];

	mw_stretch_describe(reason);
	scnprintf(text, sizeof(text), "the period is now %llu us instead of %llu us: %s",
		  now / NSEC_PER_USEC, before / NSEC_PER_USEC, reason);
	mw_notify(MEMWATCH_NOTICE_PERIOD, times, now, text);
}

/*
 * The holder of mw_control_lock may be waiting for this worker. If the lock is not free,
 * the CPU asks again at the end of its next window.
 */
static void stretch_lengthen(struct work_struct *work)
{
	u64 before = mw_tick_period();
	unsigned int id;
	u32 ppm;

	if (!mutex_trylock(&mw_control_lock))
		return;
	id = stretch_find_cpu(&ppm);
	if (id < nr_cpu_ids && mw_tick_lengthen()) {
		times++;
		why = id;
		why_ppm = ppm;
		stretch_announce(before, mw_tick_period());
	}
	mutex_unlock(&mw_control_lock);
}

void mw_stretch_raise(void)
{
	schedule_work(&stretch_work);
}

u32 mw_stretch_max_ppm(void)
{
	return tick_max_percent * PPM_PER_PERCENT;
}

/* Why the period is what it is. @reason: MW_STRETCH_REASON_LEN bytes */
void mw_stretch_describe(char *reason)
{
	lockdep_assert_held(&mw_control_lock);
	if (mw_tick_is_lengthened())
		snprintf(reason, MW_STRETCH_REASON_LEN,
			 "ticks took %u.%02u %% of the time of CPU %u, tick_max_percent is %u",
			 why_ppm / PPM_PER_PERCENT, why_ppm % PPM_PER_PERCENT / 100, why,
			 tick_max_percent);
	else
		strscpy(reason, "as set", MW_STRETCH_REASON_LEN);
}

/* A parameter that is out of range is refused. */
int mw_stretch_init(void)
{
	if (tick_max_percent <= 100)
		return 0;
	pr_err("tick_max_percent is %u, but must be at most 100\n", tick_max_percent);
	return -EINVAL;
}

/* No CPU ticks any more. */
void mw_stretch_disarm(void)
{
	cancel_work_sync(&stretch_work);
	times = 0;
}
