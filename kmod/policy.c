// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Scarcity is the normal state: hundreds of processes, a few dozen RMIDs.
 *
 * Hooks only note what there is to do and raise an irq_work; they hold the run
 * queue lock, where neither a timer nor a work item may be touched. From there:
 *  - a hard timer promotes those who wait, when the head of the FIFO is ripe;
 *  - workers keep the stashes full, review filters, and, with the policy
 *    "active", take RMIDs from the idle for those that run.
 *
 * An RMID is taken from a living process in three steps, because CPUs may run
 * with it: retire it (nobody starts to run with it), refresh all CPUs (nobody
 * runs with it), and only then put it back into the pool.
 */
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/sort.h>
#include <linux/workqueue.h>

#include "clock.h"
#include "compat/hrtimer.h"
#include "compat/irq_work.h"
#include "fail.h"
#include "filter.h"
#include "owner.h"
#include "policy.h"
#include "switch.h"
#include "tick.h"

#define PASS_JIFFIES   msecs_to_jiffies(10)
#define IDLE_JIFFIES   msecs_to_jiffies(100)
#define REVIEW_JIFFIES HZ

enum kick {
	KICK_PROMOTE = 1 << 0,
	KICK_PASS = 1 << 1,
	KICK_UPKEEP = 1 << 2,
	KICK_REVIEW = 1 << 3,
	KICK_REFRESH = 1 << 4,
};

static void on_kick(struct irq_work *work);
static void do_pass(struct work_struct *work);
static void do_upkeep(struct work_struct *work);
static void do_review(struct work_struct *work);
static void do_refresh(struct work_struct *work);

DEFINE_STATIC_KEY_FALSE(mw_last_run_key);

/* Under mw_lock. */
static u32 policy;
static bool armed;
static u32 kicks;
static bool promoting; /* the timer is set, or about to be */
static bool passing;   /* likewise the pass */

static struct irq_work kick_work = IRQ_WORK_INIT_HARD(on_kick);
static struct hrtimer promote_timer;
static struct workqueue_struct *queue;
static DECLARE_DELAYED_WORK(pass_work, do_pass);
static DECLARE_WORK(upkeep_work, do_upkeep);
static DECLARE_DELAYED_WORK(review_work, do_review);
static DECLARE_WORK(refresh_work, do_refresh);

static void kick(u32 what)
{
	lockdep_assert_held(&mw_lock);
	if (!armed)
		return;
	kicks |= what;
	irq_work_queue(&kick_work);
}

/* ----------------------------------------------------------- from hooks */

/* Somebody waits, or an RMID was freed: see to it that the two meet. */
void mw_policy_waiters(void)
{
	u64 ripe;

	if (!armed || list_empty(&mw_waiters))
		return;
	if (!promoting && mw_rmid_ripe_ns(&mw_pool, &ripe)) {
		promoting = true;
		kick(KICK_PROMOTE);
	}
	if (!passing && policy == MEMWATCH_POLICY_ACTIVE) {
		passing = true;
		kick(KICK_PASS);
	}
}

/* Whoever runs right now is programmed at the next tick, if there is one soon. */
void mw_policy_promoted(void)
{
	if (mw_tick_is_rare())
		kick(KICK_REFRESH);
}

void mw_policy_upkeep(void)
{
	kick(KICK_UPKEEP);
}

void mw_policy_review(void)
{
	kick(KICK_REVIEW);
}

/* ------------------------------------------------------------ promotion */

/* When to promote next, false if there is nothing to wait for. */
static bool next_promotion(u64 *when)
{
	lockdep_assert_held(&mw_lock);
	promoting = armed && !list_empty(&mw_waiters) && mw_rmid_ripe_ns(&mw_pool, when);
	return promoting;
}

static void set_promote_timer(u64 when)
{
	hrtimer_start(&promote_timer, ns_to_ktime(when), HRTIMER_MODE_ABS_HARD);
}

static enum hrtimer_restart on_promote(struct hrtimer *timer)
{
	unsigned long flags;
	bool more;
	u64 when;

	rcu_read_lock();
	raw_spin_lock_irqsave(&mw_lock, flags);
	if (armed)
		mw_owner_promote(MW_PROMOTE_MOST);
	more = next_promotion(&when);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	rcu_read_unlock();
	if (more)
		set_promote_timer(when);
	return HRTIMER_NORESTART;
}

static void on_kick(struct irq_work *work)
{
	unsigned long flags;
	bool promote;
	u64 when;
	u32 what;

	raw_spin_lock_irqsave(&mw_lock, flags);
	what = armed ? kicks : 0;
	kicks = 0;
	promote = what & KICK_PROMOTE && next_promotion(&when);
	raw_spin_unlock_irqrestore(&mw_lock, flags);

	if (promote)
		set_promote_timer(when);
	if (what & KICK_PASS)
		queue_delayed_work(queue, &pass_work, PASS_JIFFIES);
	if (what & KICK_UPKEEP)
		queue_work(queue, &upkeep_work);
	if (what & KICK_REVIEW)
		mod_delayed_work(queue, &review_work, 0);
	if (what & KICK_REFRESH)
		queue_work(queue, &refresh_work);
}

static void do_refresh(struct work_struct *work)
{
	mw_switch_refresh_all();
}

static void do_upkeep(struct work_struct *work)
{
	mw_process_upkeep();
}

/* --------------------------------------------------- taking RMIDs away */

static void finish(struct mw_retire *batch)
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

/* Name, user, cgroup and filters of all processes. May sleep. */
void mw_policy_review_now(void)
{
	struct mw_retire batch = { .reason = MEMWATCH_REASON_FILTERED };
	u32 bucket;

	for (bucket = 0; bucket < 1 << MW_PROCESS_BITS; bucket++) {
		while (!mw_process_review(bucket, &batch))
			finish(&batch);
		cond_resched();
	}
	finish(&batch);
}

static void do_review(struct work_struct *work)
{
	mw_policy_review_now();
	if (READ_ONCE(armed) && mw_filter_count())
		queue_delayed_work(queue, &review_work, REVIEW_JIFFIES);
}

/**
 * struct idle - an RMID whose owner has not run for long
 * @owner: generation << 32 | RMID
 * @since: jiffies when it was last seen to run
 */
struct idle {
	u64 owner;
	u32 since;
};

/* Room for all RMIDs; used by the pass only, and there is one at a time. */
static struct idle *idle;

static int longest_first(const void *a, const void *b)
{
	const struct idle *x = a, *y = b;

	return (s32)(x->since - y->since);
}

/* Only with the policy "active" does anybody know. */
bool mw_policy_is_idle(const struct mw_process *p, u32 now)
{
	return (s32)(now - p->last_run) >= (s32)IDLE_JIFFIES;
}

/* When it last came to a CPU or left one, whichever is later. */
static u32 last_run(const struct mw_owner *o)
{
	u32 came = o->process->last_run, left = READ_ONCE(o->last_run);

	return (s32)(came - left) > 0 ? came : left;
}

static bool is_idle(const struct mw_owner *o, u32 now)
{
	return o->process && o->process->state == MW_PROCESS_MEASURED &&
	       (s32)(now - last_run(o)) >= (s32)IDLE_JIFFIES;
}

static u32 find_idle(u32 now)
{
	unsigned long flags;
	u32 rmid, nr = 0;

	for (rmid = 1; rmid <= mw_pool.nr; rmid++) {
		const struct mw_owner *o = &mw_owners[rmid];

		raw_spin_lock_irqsave(&mw_lock, flags);
		if (is_idle(o, now))
			idle[nr++] = (struct idle){ o->process->owner, last_run(o) };
		raw_spin_unlock_irqrestore(&mw_lock, flags);
	}
	sort(idle, nr, sizeof(*idle), longest_first, NULL);
	return nr;
}

/*
 * Bring waiters that ran since @since to the front, the rest of those looked at
 * to the end, so that the next pass looks at others.
 *
 * Return: how many RMIDs are missing for them
 */
static u32 find_runners(u32 since)
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

static void revoke(u32 wanted, u32 now)
{
	struct mw_retire batch = { .reason = MEMWATCH_REASON_REVOKED };
	unsigned long flags;
	u32 nr, i;

	/* Whoever runs right now has run: a tick may be late. */
	mw_switch_refresh_all();
	nr = find_idle(now);
	raw_spin_lock_irqsave(&mw_lock, flags);
	for (i = 0; i < nr && batch.nr < min_t(u32, wanted, MW_RETIRE_BATCH); i++) {
		const struct mw_owner *o = &mw_owners[mw_owner_rmid(idle[i].owner)];

		if (is_idle(o, now) && o->process->owner == idle[i].owner)
			mw_owner_retire(o->process, &batch);
	}
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	finish(&batch);
}

/* Policy "active": while somebody waits, those that run take from the idle. */
static void do_pass(struct work_struct *work)
{
	static u32 since;
	u32 now = jiffies, wanted;
	unsigned long flags;
	bool again;

	/* CPUs that tick note what they run; ask the others. */
	if (mw_tick_is_rare())
		mw_switch_refresh_all();
	if (now - since > IDLE_JIFFIES)
		since = now - PASS_JIFFIES;
	wanted = find_runners(since);
	since = now;
	if (wanted)
		revoke(wanted, now);

	raw_spin_lock_irqsave(&mw_lock, flags);
	passing = armed && policy == MEMWATCH_POLICY_ACTIVE && !list_empty(&mw_waiters);
	again = passing;
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	if (again)
		queue_delayed_work(queue, &pass_work, PASS_JIFFIES);
}

/* -------------------------------------------------- start, stop, change */

int mw_policy_init(void)
{
	if (mw_fail(MW_FAIL_POLICY_INIT))
		return -ENOMEM;
	hrtimer_setup(&promote_timer, on_promote, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
	queue = alloc_workqueue("memwatch", WQ_UNBOUND | WQ_HIGHPRI, 0);
	return queue ? 0 : -ENOMEM;
}

void mw_policy_uninit(void)
{
	destroy_workqueue(queue);
}

static void last_run_key(bool on)
{
	if (on)
		static_branch_enable(&mw_last_run_key);
	else
		static_branch_disable(&mw_last_run_key);
}

int mw_policy_arm(void)
{
	unsigned long flags;

	idle = mw_fail(MW_FAIL_UPKEEP) ? NULL : kvcalloc(mw_pool.nr, sizeof(*idle), GFP_KERNEL);
	if (!idle)
		return -ENOMEM;
	last_run_key(policy == MEMWATCH_POLICY_ACTIVE);
	raw_spin_lock_irqsave(&mw_lock, flags);
	armed = true;
	kicks = 0;
	promoting = false;
	passing = false;
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	if (mw_filter_count())
		queue_delayed_work(queue, &review_work, REVIEW_JIFFIES);
	return 0;
}

/* Afterwards nothing runs and nothing can be kicked, though probes still call. */
void mw_policy_disarm(void)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&mw_lock, flags);
	armed = false;
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	irq_work_sync(&kick_work);
	hrtimer_cancel(&promote_timer);
	cancel_delayed_work_sync(&pass_work);
	cancel_work_sync(&upkeep_work);
	cancel_delayed_work_sync(&review_work);
	cancel_work_sync(&refresh_work);
	last_run_key(false);
	kvfree(idle);
	idle = NULL;
}

size_t mw_policy_memory(void)
{
	return idle ? mw_pool.nr * sizeof(*idle) : 0;
}

/* The caller holds the control mutex, so this is not while arming. */
void mw_policy_set(u32 new, u64 limbo_ns)
{
	unsigned long flags;

	if (READ_ONCE(armed))
		last_run_key(new == MEMWATCH_POLICY_ACTIVE);
	raw_spin_lock_irqsave(&mw_lock, flags);
	policy = new;
	mw_pool.limbo_ns = limbo_ns;
	/* A shorter limbo may end before the timer that is set. */
	promoting = false;
	mw_policy_waiters();
	raw_spin_unlock_irqrestore(&mw_lock, flags);
}

void mw_policy_filters_changed(void)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&mw_lock, flags);
	mw_policy_review();
	raw_spin_unlock_irqrestore(&mw_lock, flags);
}
