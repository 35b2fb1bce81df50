// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which processes lose their RMIDs to others.
 *
 * An RMID is taken from a living process in three steps, because CPUs may run
 * with it: retire it, so that no CPU starts to run with it; refresh the CPUs that run
 * with it, so that none does any more; and only then return it to the pool.
 *
 * Only one worker calls mw_revoke_pass(), so the data of a pass need no lock. They
 * are allocated before this worker is first queued, and freed after it has ended.
 */
#include <linux/mm.h>
#include <linux/sort.h>

#include "fail.h"
#include "lock.h"
#include "refresh.h"
#include "revoke.h"
#include "user.h"

/* Policy "fair": a process that runs keeps its RMID at least for this long. */
#define SLICE_JIFFIES msecs_to_jiffies(100)

/* Policy "fair": how often RMIDs may be taken from processes whose slice is over. */
#define ROTATE_JIFFIES msecs_to_jiffies(50)

/* Policy "active": a waiting process that ran within this time is a reason to take an RMID. */
#define ACTIVE_JIFFIES msecs_to_jiffies(10)

/**
 * enum revoke_class - who loses an RMID first
 * @REVOKE_ASLEEP: it has neither run nor got the RMID for MW_ASLEEP_JIFFIES
 * @REVOKE_IDLE: it has not run for MW_PROCESS_IDLE_JIFFIES; with the policy "fair", if it
 *	has not run since it got the RMID, that was at least MW_RUNNING_JIFFIES ago
 * @REVOKE_PAUSED: its slice is over, and it does not run right now
 * @REVOKE_RUNNING: its slice is over, and it runs
 * @REVOKE_NEVER: it keeps its RMID
 */
enum revoke_class {
	REVOKE_ASLEEP,
	REVOKE_IDLE,
	REVOKE_PAUSED,
	REVOKE_RUNNING,
	REVOKE_NEVER,
};

/**
 * struct revoke_candidate - a process that may lose its RMID
 * @owner: generation << 32 | RMID
 * @since: jiffies since when it has been idle, or has held the RMID
 * @class: &enum revoke_class
 */
struct revoke_candidate {
	u64 owner;
	unsigned long since;
	enum revoke_class class;
};

/* One entry for each RMID. */
static struct revoke_candidate *candidates;

/* Number of the last pass; jiffies when a pass last ended a slice (PAUSED or RUNNING). */
static u32 pass;
static unsigned long rotated;

int mw_revoke_arm(void)
{
	if (!mw_fail(MW_FAIL_POLICY_ARM))
		candidates = kvcalloc(mw_pool.nr, sizeof(*candidates), GFP_KERNEL);
	return candidates ? 0 : -ENOMEM;
}

void mw_revoke_disarm(void)
{
	kvfree(candidates);
	candidates = NULL;
}

size_t mw_revoke_memory(void)
{
	return candidates ? mw_pool.nr * sizeof(*candidates) : 0;
}

/* No CPU runs with the RMIDs of @batch when this returns, and they are free. */
void mw_revoke_finish(struct mw_retire *batch)
{
	unsigned long flags;

	if (!batch->nr)
		return;
	mw_refresh_retired(batch);
	raw_spin_lock_irqsave(&mw_lock, flags);
	mw_owner_retired(batch);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	batch->nr = 0;
}

/* ---------------------------------------------------------- candidates */

static enum revoke_class revoke_classify_active(const struct mw_owner *o, unsigned long now,
						unsigned long *since)
{
	*since = o->process->last_run;
	return mw_process_is_idle(o->process, now) ? REVOKE_IDLE : REVOKE_NEVER;
}

/*
 * If a process has not run since it got its RMID, it keeps the RMID for longer: it was
 * given one because it runs now and then, and if the RMID were taken before the next
 * run, the process might never be measured.
 */
static enum revoke_class revoke_classify_fair(const struct mw_owner *o, unsigned long now,
					      unsigned long *since)
{
	bool ran = time_after(o->process->last_run, o->given);
	unsigned long last = ran ? o->process->last_run : o->given;
	long idle = now - last, held = now - o->given;

	*since = last;
	if (idle >= MW_ASLEEP_JIFFIES)
		return REVOKE_ASLEEP;
	if (idle >= (long)(ran ? MW_PROCESS_IDLE_JIFFIES : MW_RUNNING_JIFFIES))
		return REVOKE_IDLE;
	*since = o->given;
	if (!ran || held < (long)SLICE_JIFFIES || now - rotated < ROTATE_JIFFIES)
		return REVOKE_NEVER;
	return idle > MW_FRESH_JIFFIES ? REVOKE_PAUSED : REVOKE_RUNNING;
}

static enum revoke_class revoke_classify(u32 rmid, unsigned long now, unsigned long *since)
{
	const struct mw_owner *o = &mw_owners[rmid];

	lockdep_assert_held(&mw_lock);
	if (!o->process || o->process->state != MW_PROCESS_MEASURED)
		return REVOKE_NEVER;
	return mw_owner_policy == MEMWATCH_POLICY_FAIR ? revoke_classify_fair(o, now, since)
						       : revoke_classify_active(o, now, since);
}

static int revoke_compare(const void *a, const void *b)
{
	const struct revoke_candidate *x = a, *y = b;

	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	if (x->since == y->since)
		return 0;
	return time_before(x->since, y->since) ? -1 : 1;
}

/* Fill @candidates, the first to lose its RMID first. Returns their number. */
static u32 revoke_find_candidates(unsigned long now)
{
	struct revoke_candidate c;
	unsigned long flags;
	u32 rmid, nr = 0;

	for (rmid = 1; rmid <= mw_pool.nr; rmid++) {
		raw_spin_lock_irqsave(&mw_lock, flags);
		c.class = revoke_classify(rmid, now, &c.since);
		if (c.class != REVOKE_NEVER) {
			c.owner = mw_owners[rmid].process->owner;
			candidates[nr++] = c;
		}
		raw_spin_unlock_irqrestore(&mw_lock, flags);
	}
	sort(candidates, nr, sizeof(*candidates), revoke_compare, NULL);
	return nr;
}

/* Has the candidate neither run nor lost its RMID since it was found? */
static bool revoke_is_valid(const struct revoke_candidate *c, unsigned long now)
{
	u32 rmid = mw_owner_rmid(c->owner);
	unsigned long since;

	return revoke_classify(rmid, now, &since) <= c->class &&
	       mw_owners[rmid].process->owner == c->owner;
}

/* --------------------------------------------------------- policy "fair" */

/*
 * Reserve the free RMIDs for queued processes. Returns whether a user wants more RMIDs
 * than it gets of these: too few are free, or it already holds as many as it may.
 */
static bool revoke_begin_pass(void)
{
	struct mw_user *u;
	u32 free;

	lockdep_assert_held(&mw_lock);
	pass++;
	for (free = mw_owner_free(); (u = mw_user_poorest(pass)) && free; free--)
		if (!mw_user_promise(u, mw_owner_fair_limit(free)))
			break;
	return u;
}

/* Retire the RMID of a candidate if there is a user who may take it. */
static bool revoke_for_user(const struct revoke_candidate *c, unsigned long now,
			    struct mw_retire *batch)
{
	struct mw_process *p;
	struct mw_user *taker;

	if (!revoke_is_valid(c, now))
		return false;
	p = mw_owners[mw_owner_rmid(c->owner)].process;
	taker = mw_user_taker(p->user, pass, c->class == REVOKE_ASLEEP);
	if (!taker)
		return false;
	mw_user_promise(taker, ~0U);
	mw_owner_retire(p, batch);
	return true;
}

static void revoke_pass_fair(void)
{
	struct mw_retire batch = { .reason = MEMWATCH_REASON_REVOKED };
	unsigned long flags, now = jiffies;
	bool rotates = false, wanted;
	u32 nr, i;

	raw_spin_lock_irqsave(&mw_lock, flags);
	wanted = revoke_begin_pass();
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	nr = wanted ? revoke_find_candidates(now) : 0;
	if (!nr)
		return;
	mw_refresh_note_running();
	for (i = 0; i < nr && batch.nr < MW_RETIRE_BATCH; i++) {
		raw_spin_lock_irqsave(&mw_lock, flags);
		if (revoke_for_user(&candidates[i], now, &batch))
			rotates |= candidates[i].class >= REVOKE_PAUSED;
		raw_spin_unlock_irqrestore(&mw_lock, flags);
	}
	if (rotates)
		rotated = now;
	mw_revoke_finish(&batch);
}

/* ------------------------------------------------------- policy "active" */

/*
 * Move waiting processes that ran since @since to the front of the list, and the
 * others that were looked at to its end, so that the next pass looks at others.
 *
 * Return: the number of RMIDs that are missing for those that ran
 */
static u32 revoke_count_missing(unsigned long since)
{
	u32 runners = 0, ready, left;
	struct mw_process *p;
	unsigned long flags;
	LIST_HEAD(front);

	raw_spin_lock_irqsave(&mw_lock, flags);
	left = min_t(u32, mw_owner_stats.state[MW_PROCESS_WAITING], MW_RETIRE_BATCH);
	for (; left && !list_empty(&mw_waiters); left--) {
		p = list_first_entry(&mw_waiters, struct mw_process, waiters);
		if (time_after_eq(p->last_run, since)) {
			list_move_tail(&p->waiters, &front);
			runners++;
		} else {
			list_move_tail(&p->waiters, &mw_waiters);
		}
	}
	list_splice(&front, &mw_waiters);
	ready = mw_owner_free();
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	return runners > ready ? runners - ready : 0;
}

static void revoke_idle(u32 wanted, unsigned long now)
{
	struct mw_retire batch = { .reason = MEMWATCH_REASON_REVOKED };
	unsigned long flags;
	u32 nr, i;

	mw_refresh_note_running();
	nr = revoke_find_candidates(now);
	raw_spin_lock_irqsave(&mw_lock, flags);
	for (i = 0; i < nr && batch.nr < min_t(u32, wanted, MW_RETIRE_BATCH); i++)
		if (revoke_is_valid(&candidates[i], now))
			mw_owner_retire(mw_owners[mw_owner_rmid(candidates[i].owner)].process,
					&batch);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	mw_revoke_finish(&batch);
}

static void revoke_pass_active(void)
{
	static unsigned long since;
	unsigned long now = jiffies;
	u32 wanted;

	if (now - since > MW_PROCESS_IDLE_JIFFIES)
		since = now - ACTIVE_JIFFIES;
	wanted = revoke_count_missing(since);
	since = now;
	if (wanted)
		revoke_idle(wanted, now);
}

/* While processes wait: take RMIDs from others, as the policy says. */
void mw_revoke_pass(void)
{
	mw_refresh_ask_unticked();
	if (READ_ONCE(mw_owner_policy) == MEMWATCH_POLICY_FAIR)
		revoke_pass_fair();
	else
		revoke_pass_active();
}
