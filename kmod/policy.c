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
 *    call revoke.c, which takes RMIDs from some processes for others that run.
 */
#include <linux/string.h>
#include <linux/workqueue.h>

#include "clock.h"
#include "compat/hrtimer.h"
#include "fail.h"
#include "filter.h"
#include "kick.h"
#include "lock.h"
#include "owner.h"
#include "policy.h"
#include "process.h"
#include "refresh.h"
#include "revoke.h"
#include "tick.h"
#include "track.h"

/* Between two promotions of as many processes as one interrupt may promote. */
#define PROMOTE_PAUSE_NS 50000

#define REVOKE_JIFFIES	 msecs_to_jiffies(10)
#define REVIEW_JIFFIES	 HZ

#define KICKS_FIFO                                                                                 \
	(MW_KICK_PROMOTE | MW_KICK_REFILL | MW_KICK_REVIEW | MW_KICK_EXPEL | MW_KICK_REFRESH)
#define KICKS_OTHER (KICKS_FIFO | MW_KICK_REVOKE)

static void policy_revoke_work(struct work_struct *work);
static void policy_refill_work(struct work_struct *work);
static void policy_review_work(struct work_struct *work);
static void policy_expel_work(struct work_struct *work);
static void policy_refresh_work(struct work_struct *work);

static struct hrtimer promote_timer;
static struct workqueue_struct *queue;
static DECLARE_DELAYED_WORK(revoke_work, policy_revoke_work);
static DECLARE_WORK(refill_work, policy_refill_work);
static DECLARE_DELAYED_WORK(review_work, policy_review_work);
static DECLARE_WORK(expel_work, policy_expel_work);
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
	wait = policy_is_armed() && mw_owner_can_promote() && mw_rmid_ripe_ns(&mw_pool, when);
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
		mw_owner_promote();
	more = policy_next_promotion(&when);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	rcu_read_unlock();
	/* A timer that is due at once would run in the same interrupt again. */
	if (more)
		policy_start_timer(max(when, mw_now() + PROMOTE_PAUSE_NS));
	return HRTIMER_NORESTART;
}

/* As policy_next_promotion(), for who starts the timer. */
static bool policy_plan_promotion(u64 *when)
{
	unsigned long flags;
	bool wait;

	raw_spin_lock_irqsave(&mw_lock, flags);
	wait = policy_next_promotion(when);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	return wait;
}

/* ---------------------------------------------------------------- kicks */

/*
 * The handler of all kicks, in hard interrupt context. A process that was
 * promoted while it runs gets its RMID programmed at the next tick of its CPU;
 * only where that tick is far away, the CPU is interrupted.
 */
static void policy_handle_kicks(u32 kicks)
{
	u64 when;

	if (kicks & MW_KICK_PROMOTE && policy_plan_promotion(&when))
		policy_start_timer(when);
	if (kicks & MW_KICK_REVOKE)
		queue_delayed_work(queue, &revoke_work, REVOKE_JIFFIES);
	if (kicks & MW_KICK_REFILL)
		queue_work(queue, &refill_work);
	if (kicks & MW_KICK_REVIEW)
		mod_delayed_work(queue, &review_work, 0);
	if (kicks & MW_KICK_EXPEL)
		queue_work(queue, &expel_work);
	if (kicks & MW_KICK_REFRESH && mw_tick_is_rare())
		queue_work(queue, &refresh_work);
}

static void policy_refresh_work(struct work_struct *work)
{
	mw_refresh_promoted();
}

static void policy_refill_work(struct work_struct *work)
{
	mw_track_refill();
}

/* ------------------------------------------------------------- workers */

/* Update name, user and cgroup of all processes, and apply the filters. May sleep. */
void mw_policy_review(void)
{
	struct mw_retire batch = { .reason = MEMWATCH_REASON_FILTERED };
	u32 bucket;

	for (bucket = 0; bucket < mw_process_buckets(); bucket++) {
		while (!mw_track_review(bucket, &batch))
			mw_revoke_finish(&batch);
		cond_resched();
	}
	mw_revoke_finish(&batch);
}

static void policy_expel_work(struct work_struct *work)
{
	struct mw_retire batch = { .reason = MEMWATCH_REASON_FILTERED };
	bool done;

	do {
		done = mw_track_expel(&batch);
		mw_revoke_finish(&batch);
	} while (!done);
}

static void policy_review_work(struct work_struct *work)
{
	mw_policy_review();
	if (policy_is_armed() && mw_filter_count())
		queue_delayed_work(queue, &review_work, REVIEW_JIFFIES);
}

/* While processes wait, and until nobody runs who waits. */
static void policy_revoke_work(struct work_struct *work)
{
	unsigned long flags;
	bool again;
	u64 when;

	mw_revoke_pass();
	raw_spin_lock_irqsave(&mw_lock, flags);
	again = mw_kick_is_enabled(MW_KICK_REVOKE) && mw_owner_has_waiters();
	mw_kick_set_pending(MW_KICK_REVOKE, again);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	if (again)
		queue_delayed_work(queue, &revoke_work, REVOKE_JIFFIES);
	/* What a process may get depends on what the others hold. */
	if (policy_plan_promotion(&when)) {
		mw_fail_delay("a worker that starts the timer of promotions");
		policy_start_timer(when);
	}
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
	return mw_owner_policy == MEMWATCH_POLICY_FIFO ? KICKS_FIFO : KICKS_OTHER;
}

int mw_policy_arm(void)
{
	unsigned long flags;

	if (mw_revoke_arm())
		return -ENOMEM;
	policy_set_last_run_key(mw_owner_policy != MEMWATCH_POLICY_FIFO);
	raw_spin_lock_irqsave(&mw_lock, flags);
	mw_kick_arm(policy_select_kicks());
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	if (mw_filter_count())
		queue_delayed_work(queue, &review_work, REVIEW_JIFFIES);
	return 0;
}

/*
 * Afterwards no timer and no worker runs. Hooks may still raise kicks, without effect. Kicks
 * and revoke_work start the timer, so it is cancelled when neither of them runs any more.
 */
void mw_policy_disarm(void)
{
	mw_kick_disarm();
	cancel_delayed_work_sync(&revoke_work);
	hrtimer_cancel(&promote_timer);
	cancel_work_sync(&refill_work);
	cancel_delayed_work_sync(&review_work);
	cancel_work_sync(&expel_work);
	cancel_work_sync(&refresh_work);
	policy_set_last_run_key(false);
	mw_revoke_disarm();
}

static const char *const policy_names[] = {
	[MEMWATCH_POLICY_FIFO] = "fifo",
	[MEMWATCH_POLICY_ACTIVE] = "active",
	[MEMWATCH_POLICY_FAIR] = "fair",
};

const char *mw_policy_name(u32 policy)
{
	return policy_names[policy];
}

/* Returns the policy or -EINVAL. */
int mw_policy_parse(const char *name)
{
	return match_string(policy_names, ARRAY_SIZE(policy_names), name);
}

/* The caller holds mw_control_lock, so arming and disarming do not run meanwhile. */
void mw_policy_configure(u32 new, u64 limbo_ns)
{
	bool armed = policy_is_armed();
	unsigned long flags;

	if (armed)
		policy_set_last_run_key(new != MEMWATCH_POLICY_FIFO);
	raw_spin_lock_irqsave(&mw_lock, flags);
	mw_owner_policy = new;
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
