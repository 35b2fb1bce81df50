// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Telling CPUs about a change of owner, see refresh.h.
 */
#include <linux/cpumask.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/smp.h>
#include <linux/tick.h>

#include "compat/sched.h"
#include "lock.h"
#include "refresh.h"
#include "switch.h"
#include "tick.h"

/* How often CPUs without a tick are asked what they run. */
#define ASK_JIFFIES (HZ / 4)

static void refresh_this_cpu(void *unused)
{
	mw_switch_refresh(this_cpu_ptr(&mw_cpu));
}

static u64 refresh_owner_on(unsigned int id)
{
	return READ_ONCE(per_cpu(mw_cpu, id).owner);
}

/* -------------------------------------------------------------- retired */

static bool refresh_runs_retired(int id, void *arg)
{
	const struct mw_retire *batch = arg;
	u64 owner = refresh_owner_on(id);
	u32 i;

	for (i = 0; owner && i < batch->nr; i++)
		if (batch->owner[i] == owner)
			return true;
	return false;
}

/* No CPU runs with an RMID of @batch when this returns. */
void mw_refresh_retired(const struct mw_retire *batch)
{
	synchronize_rcu();
	on_each_cpu_cond(refresh_runs_retired, refresh_this_cpu, (void *)batch, true);
}

/* ------------------------------------------------------------- promoted */

/* Note the RMIDs that were given since the last call, for the grace period that follows. */
static bool refresh_begin(void)
{
	unsigned long flags;
	bool any = false;
	u32 rmid;

	for (rmid = 1; rmid <= mw_pool.nr; rmid++) {
		struct mw_owner *o = &mw_owners[rmid];

		raw_spin_lock_irqsave(&mw_lock, flags);
		if (o->late == MW_LATE_NEW)
			o->late = MW_LATE_NOTED;
		any |= o->late == MW_LATE_NOTED;
		raw_spin_unlock_irqrestore(&mw_lock, flags);
	}
	return any;
}

/* The process that got an RMID before the grace period; NULL if it has gone. RCU is held. */
static struct task_struct *refresh_end(struct mw_owner *o)
{
	struct task_struct *leader = NULL;
	unsigned long flags;

	raw_spin_lock_irqsave(&mw_lock, flags);
	if (o->late == MW_LATE_NOTED) {
		o->late = MW_LATE_NOT;
		leader = o->process ? mw_process_leader(o->process) : NULL;
	}
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	return leader;
}

/* Add the CPUs to @cpus that run a thread of the process and will not tick soon. */
static void refresh_find_cpus(struct mw_owner *o, cpumask_t *cpus)
{
	struct task_struct *leader, *task;

	rcu_read_lock();
	leader = refresh_end(o);
	if (leader)
		for_each_thread(leader, task) if (mw_task_on_cpu(task) &&
						  mw_tick_is_rare_on(task_cpu(task)))
			cpumask_set_cpu(task_cpu(task), cpus);
	rcu_read_unlock();
}

/*
 * Program the RMIDs of processes that got them while they ran on a CPU whose next
 * tick is far away. The other CPUs do it at their next tick.
 */
void mw_refresh_promoted(void)
{
	static cpumask_t cpus;
	u32 rmid;

	if (!refresh_begin())
		return;
	synchronize_rcu();
	cpumask_clear(&cpus);
	for (rmid = 1; rmid <= mw_pool.nr; rmid++)
		refresh_find_cpus(&mw_owners[rmid], &cpus);
	on_each_cpu_mask(&cpus, refresh_this_cpu, NULL, true);
}

/* --------------------------------------------------------- what runs now */

/*
 * Note which processes with an RMID run at this moment. The switch hook noted when
 * they began to run, and the ticks since then may be late or far apart.
 */
void mw_refresh_note_running(void)
{
	unsigned int id;

	for_each_online_cpu (id) {
		u64 owner = refresh_owner_on(id);
		struct mw_process *p;
		unsigned long flags;

		if (!owner)
			continue;
		raw_spin_lock_irqsave(&mw_lock, flags);
		p = mw_owners[mw_owner_rmid(owner)].process;
		if (p && p->owner == owner)
			WRITE_ONCE(p->last_run, jiffies);
		raw_spin_unlock_irqrestore(&mw_lock, flags);
	}
}

static bool refresh_may_run_waiting(int id, void *unused)
{
	return !refresh_owner_on(id) && mw_tick_is_rare_on(id) && !tick_nohz_full_cpu(id) &&
	       READ_ONCE(per_cpu(mw_cpu, id).state) != MW_TICK_IDLE;
}

/*
 * Ask the CPUs that do not tick, or seldom, whether they run a process that waits
 * for an RMID. CPUs of nohz_full= are left alone: a process that waits there is
 * noticed only when it is switched to.
 */
void mw_refresh_ask_unticked(void)
{
	static unsigned long asked;

	if (!mw_tick_is_rare() || jiffies - asked < ASK_JIFFIES)
		return;
	asked = jiffies;
	on_each_cpu_cond(refresh_may_run_waiting, refresh_this_cpu, NULL, true);
}
