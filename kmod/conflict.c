// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Other users of RDT. During a session that uses RDT, a worker checks whether
 * resctrl has been mounted, or a CPU has come online with fewer RMIDs than were
 * given out. Then the session gives up RDT and continues without it. The worker
 * runs four times a second, and at once when a tick sees that resctrl is mounted. It has a high
 * priority because it also asks CPUs without a tick, which others keep busy.
 */
#include <linux/cpu.h>
#include <linux/jiffies.h>
#include <linux/workqueue.h>

#include "clock.h"
#include "conflict.h"
#include "cpu.h"
#include "fail.h"
#include "lock.h"
#include "notify.h"
#include "rdt-bout.h"
#include "rdt-domain.h"
#include "rdt-session.h"
#include "rdt.h"
#include "resctrl.h"
#include "tick.h"

static void conflict_watch_rdt(struct work_struct *work);
static void conflict_check_users(struct work_struct *unused);

static DECLARE_DELAYED_WORK(watch_work, conflict_watch_rdt);
static DECLARE_WORK(urgent_work, conflict_check_users);

static unsigned long conflict_interval(void)
{
	return nsecs_to_jiffies(MW_RDT_BOUT_EXCLUDED_NS);
}

/* Has the session given up RDT? */
static bool conflict_is_over(void)
{
	return READ_ONCE(mw_rdt.backend) == MEMWATCH_BACKEND_EMULATED;
}

/*
 * The holder of mw_control_lock may be waiting for this worker: if the lock is
 * not free, the worker tries again later.
 *
 * A CPU is in cpu_online_mask before its callback has run, and stays there after
 * its callback has left the session. cpus_read_lock waits until no CPU is between
 * the two, so that each CPU that the broadcasts reach has joined the session, and
 * will leave it before it goes offline.
 */
static void conflict_end_rdt(u32 kind, const char *reason)
{
	bool ends;

	if (!mutex_trylock(&mw_control_lock))
		return;
	/* The other one of the two works may have been first. */
	ends = !conflict_is_over();
	if (ends) {
		cpus_read_lock();
		mw_rdt_session_give_up(reason);
		mw_fail_delay("giving up RDT");
		mw_tick_admit_all();
		cpus_read_unlock();
	}
	mutex_unlock(&mw_control_lock);
	if (ends)
		mw_notify(kind, 1, 0, NULL);
}

static void conflict_check_users(struct work_struct *unused)
{
	mw_fail_delay("looking for other users of RDT");
	if (READ_ONCE(mw_rdt_small_cpu))
		conflict_end_rdt(MEMWATCH_NOTICE_SMALL_CPU,
				 "a CPU has fewer RMIDs; reload the module to use that number");
	else if (mw_resctrl_is_mounted())
		conflict_end_rdt(MEMWATCH_NOTICE_RESCTRL,
				 "resctrl was mounted while the session ran");
}

/* CPUs without a tick report here which RMIDs ran on them. They have one slot together. */
static void conflict_ask_excluded(void)
{
	u64 slot = mw_now();
	unsigned int id;

	cpus_read_lock();
	for_each_online_cpu (id)
		if (READ_ONCE(per_cpu(mw_cpu, id).state) == MW_TICK_EXCLUDED)
			smp_call_function_single(id, mw_rdt_bout_excluded, &slot, 1);
	cpus_read_unlock();
}

static void conflict_watch_rdt(struct work_struct *work)
{
	conflict_check_users(work);
	if (conflict_is_over())
		return;
	conflict_ask_excluded();
	queue_delayed_work(system_highpri_wq, &watch_work, conflict_interval());
}

void mw_conflict_arm(void)
{
	if (mw_rdt.format.events)
		queue_delayed_work(system_highpri_wq, &watch_work, conflict_interval());
}

/* A tick has seen that resctrl is mounted. */
void mw_conflict_raise(void)
{
	schedule_work(&urgent_work);
}

/* No CPU ticks any more. */
void mw_conflict_disarm(void)
{
	cancel_delayed_work_sync(&watch_work);
	cancel_work_sync(&urgent_work);
	/* A CPU with too few RMIDs that is still online sets this again in the next session. */
	WRITE_ONCE(mw_rdt_small_cpu, false);
}
