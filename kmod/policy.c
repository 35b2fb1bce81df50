// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The policy: RMIDs are scarce, a few dozen for hundreds of processes. This file
 * decides when they change hands, and does the work that hooks ask for with a
 * kick:
 *  - an hrtimer in hard interrupt context promotes waiting processes when the first
 *    free RMID has rested long enough;
 *  - workers refill the object caches, match processes against the filters, and
 *    with the policy "active" take RMIDs from idle processes for those that run.
 *
 * An RMID is taken from a living process in three steps, because CPUs may run
 * with it: retire it, so that no CPU starts to run with it; refresh all CPUs, so
 * that none runs with it any more; and only then return it to the pool.
 */
#include <linux/mm.h>
#include <linux/sort.h>
#include <linux/workqueue.h>

#include "compat/hrtimer.h"
#include "fail.h"
#include "filter.h"
#include "kick.h"
#include "lock.h"
#include "owner.h"
#include "policy.h"
#include "process.h"
#include "switch.h"
#include "tick.h"
#include "track.h"

#define REVOKE_JIFFIES msecs_to_jiffies(10)
#define REVIEW_JIFFIES HZ

#define KICKS_FIFO     (MW_KICK_PROMOTE | MW_KICK_REFILL | MW_KICK_REVIEW | MW_KICK_REFRESH)
#define KICKS_ACTIVE   (KICKS_FIFO | MW_KICK_REVOKE)

static void policy_revoke_work(struct work_struct *work);
static void policy_refill_work(struct work_struct *work);
static void policy_review_work(struct work_struct *work);
static void policy_refresh_work(struct work_struct *work);

/* Guarded by mw_lock. */
static u32 policy;

static struct hrtimer promote_timer;
static struct workqueue_struct *queue;
static DECLARE_DELAYED_WORK(revoke_work, policy_revoke_work);
static DECLARE_WORK(refill_work, policy_refill_work);
static DECLARE_DELAYED_WORK(review_work, policy_review_work);
static DECLARE_WORK(refresh_work, policy_refresh_work);

/* Enabled from arming to disarming, whatever the policy. */
static bool policy_is_armed(void)
{
	return mw_kick_is_enabled(MW_KICK_PROMOTE);
}

/* ------------------------------------------------------------ promotion */

/* When to promote next; false if there is nothing to wait for. */
static bool policy_next_promotion(u64 *when)
{
	bool wait;

	lockdep_assert_held(&mw_lock);
	wait = policy_is_armed() && !list_empty(&mw_waiters) && mw_rmid_ripe_ns(&mw_pool, when);
	mw_kick_set_pending(MW_KICK_PROMOTE, wait);
	return wait;
}

static void policy_start_timer(u64 when)
{
	hrtimer_start(&promote_timer, ns_to_ktime(when), HRTIMER_MODE_ABS_HARD);
}

static enum hrtimer_restart policy_promote(struct hrtimer *timer)
{
	unsigned long flags;
	bool more;
	u64 when;

	rcu_read_lock();
	raw_spin_lock_irqsave(&mw_lock, flags);
	if (policy_is_armed())
		mw_owner_promote(MW_PROMOTE_MOST);
	more = policy_next_promotion(&when);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	rcu_read_unlock();
	if (more)
		policy_start_timer(when);
	return HRTIMER_NORESTART;
}

static void policy_schedule_promotion(void)
{
	unsigned long flags;
	bool promote;
	u64 when;

	raw_spin_lock_irqsave(&mw_lock, flags);
	promote = policy_next_promotion(&when);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	if (promote)
		policy_start_timer(when);
}

/* ---------------------------------------------------------------- kicks */

/*
 * The handler of all kicks, in hard interrupt context. A process that was
 * promoted while it runs gets its RMID programmed at the next tick of its CPU;
 * only where that tick is far away, all CPUs are interrupted.
 */
static void policy_handle_kicks(u32 kicks)
{
	if (kicks & MW_KICK_PROMOTE)
		policy_schedule_promotion();
	if (kicks & MW_KICK_REVOKE)
		queue_delayed_work(queue, &revoke_work, REVOKE_JIFFIES);
	if (kicks & MW_KICK_REFILL)
		queue_work(queue, &refill_work);
	if (kicks & MW_KICK_REVIEW)
		mod_delayed_work(queue, &review_work, 0);
	if (kicks & MW_KICK_REFRESH && mw_tick_is_rare())
		queue_work(queue, &refresh_work);
}

static void policy_refresh_work(struct work_struct *work)
{
	mw_switch_refresh_all();
}

static void policy_refill_work(struct work_struct *work)
{
	mw_track_refill();
}

/* --------------------------------------------------- taking RMIDs away */

static void policy_free_retired(struct mw_retire *batch)
{
	unsigned long flags;

	if (!batch->nr)
		return;
	mw_switch_refresh_all();
	raw_spin_lock_irqsave(&mw_lock, flags);
	mw_owner_retired(batch);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	batch->nr = 0;
}

/* Update name, user and cgroup of all processes, and apply the filters. May sleep. */
void mw_policy_review(void)
{
	struct mw_retire batch = { .reason = MEMWATCH_REASON_FILTERED };
	u32 bucket;

	for (bucket = 0; bucket < 1 << MW_PROCESS_BITS; bucket++) {
		while (!mw_track_review(bucket, &batch))
			policy_free_retired(&batch);
		cond_resched();
	}
	policy_free_retired(&batch);
}

static void policy_review_work(struct work_struct *work)
{
	mw_policy_review();
	if (policy_is_armed() && mw_filter_count())
		queue_delayed_work(queue, &review_work, REVIEW_JIFFIES);
}

/**
 * struct idle_owner - an RMID whose owner has not run for a while
 * @owner: generation << 32 | RMID
 * @since: jiffies when the owner was last seen running
 */
struct idle_owner {
	u64 owner;
	u32 since;
};

/* One entry for each RMID. Used by policy_revoke_work() only, so without a lock. */
static struct idle_owner *idle_owners;

static int policy_compare_idle(const void *a, const void *b)
{
	const struct idle_owner *x = a, *y = b;

	return (s32)(x->since - y->since);
}

/* When the process was last switched to or switched out, whichever is later. */
static u32 policy_last_run(const struct mw_owner *o)
{
	u32 came = o->process->last_run, left = READ_ONCE(o->last_run);

	return (s32)(came - left) > 0 ? came : left;
}

static bool policy_is_idle(const struct mw_owner *o, u32 now)
{
	return o->process && o->process->state == MW_PROCESS_MEASURED &&
	       (s32)(now - policy_last_run(o)) >= (s32)MW_PROCESS_IDLE_JIFFIES;
}

/* Fill @idle_owners, the longest idle first. Returns the number of entries. */
static u32 policy_find_idle(u32 now)
{
	unsigned long flags;
	u32 rmid, nr = 0;

	for (rmid = 1; rmid <= mw_pool.nr; rmid++) {
		const struct mw_owner *o = &mw_owners[rmid];

		raw_spin_lock_irqsave(&mw_lock, flags);
		if (policy_is_idle(o, now))
			idle_owners[nr++] = (struct idle_owner){ o->process->owner,
								 policy_last_run(o) };
		raw_spin_unlock_irqrestore(&mw_lock, flags);
	}
	sort(idle_owners, nr, sizeof(*idle_owners), policy_compare_idle, NULL);
	return nr;
}

/*
 * Move waiting processes that ran since @since to the front of the list, and the
 * others that were looked at to its end, so that the next pass looks at others.
 *
 * Return: the number of RMIDs that are missing for those that ran
 */
static u32 policy_count_missing(u32 since)
{
	u32 runners = 0, ready, left;
	struct mw_process *p;
	unsigned long flags;
	LIST_HEAD(front);

	raw_spin_lock_irqsave(&mw_lock, flags);
	left = min_t(u32, mw_owner_stats.state[MW_PROCESS_WAITING], MW_RETIRE_BATCH);
	for (; left && !list_empty(&mw_waiters); left--) {
		p = list_first_entry(&mw_waiters, struct mw_process, waiters);
		if ((s32)(p->last_run - since) >= 0) {
			list_move_tail(&p->waiters, &front);
			runners++;
		} else {
			list_move_tail(&p->waiters, &mw_waiters);
		}
	}
	list_splice(&front, &mw_waiters);
	ready = mw_rmid_total(&mw_pool) - mw_pool.used;
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	return runners > ready ? runners - ready : 0;
}

static void policy_revoke_idle(u32 wanted, u32 now)
{
	struct mw_retire batch = { .reason = MEMWATCH_REASON_REVOKED };
	unsigned long flags;
	u32 nr, i;

	/* A tick may be late: note first what runs right now. */
	mw_switch_refresh_all();
	nr = policy_find_idle(now);
	raw_spin_lock_irqsave(&mw_lock, flags);
	for (i = 0; i < nr && batch.nr < min_t(u32, wanted, MW_RETIRE_BATCH); i++) {
		const struct mw_owner *o = &mw_owners[mw_owner_rmid(idle_owners[i].owner)];

		if (policy_is_idle(o, now) && o->process->owner == idle_owners[i].owner)
			mw_owner_retire(o->process, &batch);
	}
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	policy_free_retired(&batch);
}

/*
 * Policy "active": while processes wait, take RMIDs from idle processes for
 * waiting ones that run.
 */
static void policy_revoke_work(struct work_struct *work)
{
	static u32 since;
	u32 now = jiffies, wanted;
	unsigned long flags;
	bool again;

	/* A tick notes what runs on its CPU. Ask the CPUs that do not tick. */
	if (mw_tick_is_rare())
		mw_switch_refresh_all();
	if (now - since > MW_PROCESS_IDLE_JIFFIES)
		since = now - REVOKE_JIFFIES;
	wanted = policy_count_missing(since);
	since = now;
	if (wanted)
		policy_revoke_idle(wanted, now);

	raw_spin_lock_irqsave(&mw_lock, flags);
	again = mw_kick_is_enabled(MW_KICK_REVOKE) && !list_empty(&mw_waiters);
	mw_kick_set_pending(MW_KICK_REVOKE, again);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	if (again)
		queue_delayed_work(queue, &revoke_work, REVOKE_JIFFIES);
}

/* -------------------------------------------------- start, stop, change */

int mw_policy_init(void)
{
	if (mw_fail(MW_FAIL_POLICY_INIT))
		return -ENOMEM;
	mw_kick_init(policy_handle_kicks);
	hrtimer_setup(&promote_timer, policy_promote, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
	queue = alloc_workqueue("memwatch", WQ_UNBOUND | WQ_HIGHPRI, 0);
	return queue ? 0 : -ENOMEM;
}

void mw_policy_uninit(void)
{
	destroy_workqueue(queue);
}

static void policy_set_last_run_key(bool on)
{
	if (on)
		static_branch_enable(&mw_last_run_key);
	else
		static_branch_disable(&mw_last_run_key);
}

static u32 policy_select_kicks(void)
{
	return policy == MEMWATCH_POLICY_ACTIVE ? KICKS_ACTIVE : KICKS_FIFO;
}

int mw_policy_arm(void)
{
	unsigned long flags;

	idle_owners = mw_fail(MW_FAIL_POLICY_ARM)
			      ? NULL
			      : kvcalloc(mw_pool.nr, sizeof(*idle_owners), GFP_KERNEL);
	if (!idle_owners)
		return -ENOMEM;
	policy_set_last_run_key(policy == MEMWATCH_POLICY_ACTIVE);
	raw_spin_lock_irqsave(&mw_lock, flags);
	mw_kick_arm(policy_select_kicks());
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	if (mw_filter_count())
		queue_delayed_work(queue, &review_work, REVIEW_JIFFIES);
	return 0;
}

/* Afterwards no timer and no worker runs. Probes may still raise kicks, without effect. */
void mw_policy_disarm(void)
{
	mw_kick_disarm();
	hrtimer_cancel(&promote_timer);
	cancel_delayed_work_sync(&revoke_work);
	cancel_work_sync(&refill_work);
	cancel_delayed_work_sync(&review_work);
	cancel_work_sync(&refresh_work);
	policy_set_last_run_key(false);
	kvfree(idle_owners);
	idle_owners = NULL;
}

size_t mw_policy_memory(void)
{
	return idle_owners ? mw_pool.nr * sizeof(*idle_owners) : 0;
}

/* The caller holds mw_control_lock, so arming and disarming do not run meanwhile. */
void mw_policy_configure(u32 new, u64 limbo_ns)
{
	bool armed = policy_is_armed();
	unsigned long flags;

	if (armed)
		policy_set_last_run_key(new == MEMWATCH_POLICY_ACTIVE);
	raw_spin_lock_irqsave(&mw_lock, flags);
	policy = new;
	mw_pool.limbo_ns = limbo_ns;
	if (armed)
		mw_kick_enable(policy_select_kicks());
	/* A shorter limbo may end before the timer that is set. */
	mw_kick_set_pending(MW_KICK_PROMOTE, false);
	mw_owner_kick_policy();
	raw_spin_unlock_irqrestore(&mw_lock, flags);
}

void mw_policy_filters_changed(void)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&mw_lock, flags);
	mw_kick_raise(MW_KICK_REVIEW);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
}
