// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which process owns which RMID. A process is in exactly one state at any time,
 * see enum mw_process_state. Every change of state happens here, under mw_lock.
 */
#include <linux/mm.h>
#include <linux/string.h>

#include "fail.h"
#include "filter.h"
#include "kick.h"
#include "lock.h"
#include "owner.h"
#include "residue.h"
#include "user.h"

struct mw_rmid_pool mw_pool;
struct mw_owner_stats mw_owner_stats;
u32 mw_owner_policy;
LIST_HEAD(mw_waiters);

/* Processes that have an RMID although a filter excludes them. Guarded by mw_lock. */
static LIST_HEAD(excluded);

/*
 * Called after each ALLOC record; returns how many records it has sent. Set once, before
 * the first session.
 */
static u32 (*report_residue)(u32 rmid, u32 generation, u64 now);

/* Records about RMIDs that were given out. Guarded by mw_lock. */
static u32 records_sent;

int mw_owner_init(u32 nr_rmids, u32 first_rmid, u64 limbo_ns)
{
	struct mw_rmid *entry;
	int err;

	entry = mw_fail(MW_FAIL_POOL) ? NULL : kvcalloc(nr_rmids + 1, sizeof(*entry), GFP_KERNEL);
	mw_owners = kvcalloc(nr_rmids + 1, sizeof(*mw_owners), GFP_KERNEL);
	err = entry && mw_owners ? mw_residue_init(nr_rmids) : -ENOMEM;
	if (err) {
		kvfree(entry);
		kvfree(mw_owners);
		return err;
	}
	mw_rmid_pool_init(&mw_pool, entry, nr_rmids, limbo_ns);
	mw_rmid_pool_reserve(&mw_pool, first_rmid - 1);
	mw_residue_use(&mw_pool);
	return 0;
}

void mw_owner_uninit(void)
{
	kvfree(mw_pool.entry);
	kvfree(mw_owners);
	mw_residue_uninit();
}

/**
 * mw_owner_on_alloc - set the function that reports residual occupancy
 * @report: called with mw_lock held after the ALLOC record of each RMID, with
 *	the time of that record; returns the number of records it sends
 *
 * A callback, because the counters are read by a higher layer.
 */
void mw_owner_on_alloc(u32 (*report)(u32 rmid, u32 generation, u64 now))
{
	report_residue = report;
}

size_t mw_owner_memory(void)
{
	return (mw_pool.nr + 1) * (sizeof(struct mw_rmid) + sizeof(struct mw_owner)) +
	       mw_residue_memory();
}

static bool owner_is_wanted(struct task_struct *leader, const char *comm)
{
	struct mw_owner o;

	if (!mw_filter_count())
		return true;
	mw_record_set_ids(&o, leader);
	mw_record_set_name(&o, leader, comm);
	return mw_filter_match(o.cgroup_id, o.uid, o.comm);
}

/* ------------------------------------------------------------- states */

static void owner_set_state(struct mw_process *p, enum mw_process_state state)
{
	if (p->state == MW_PROCESS_MEASURED)
		mw_user_hold(p, false);
	if (state == MW_PROCESS_MEASURED)
		mw_user_hold(p, true);
	mw_owner_stats.state[p->state]--;
	mw_owner_stats.state[state]++;
	p->state = state;
}

/*
 * Is there a waiting process that the policy may give an RMID to? With the policy
 * "fair" a process that sleeps is left alone until it runs.
 */
bool mw_owner_has_waiters(void)
{
	lockdep_assert_held(&mw_lock);
	return mw_owner_policy == MEMWATCH_POLICY_FAIR ? mw_users_queued : !list_empty(&mw_waiters);
}

/*
 * Kick the policy because a process began to wait or an RMID was freed. Neither
 * kick is raised again while the policy is already at work on it.
 */
void mw_owner_kick_policy(void)
{
	u64 ripe;

	if (!mw_owner_has_waiters())
		return;
	if (mw_rmid_ripe_ns(&mw_pool, &ripe))
		mw_kick_raise_once(MW_KICK_PROMOTE);
	mw_kick_raise_once(MW_KICK_REVOKE);
}

static void owner_start_waiting(struct mw_process *p)
{
	owner_set_state(p, MW_PROCESS_WAITING);
	list_add_tail(&p->waiters, &mw_waiters);
	if ((long)(jiffies - READ_ONCE(p->last_run)) <= MW_RUNNING_JIFFIES)
		mw_user_queue(p);
	mw_owner_kick_policy();
}

static void owner_stop_waiting(struct mw_process *p)
{
	mw_user_unqueue(p);
	list_del_init(&p->waiters);
}

/* The time at which a process runs; in tests it may be long ago. */
static unsigned long owner_run_time(void)
{
	return jiffies - mw_fail_idle();
}

/**
 * mw_owner_note_run - a thread of a process begins to run, or runs
 * @p: the process
 *
 * Called by the switch hook and the tick, at most once per jiffy and process or
 * little more, without mw_lock and with interrupts off. The lock is taken only
 * when a waiting process begins to run after a pause.
 */
void mw_owner_note_run(struct mw_process *p)
{
	WRITE_ONCE(p->last_run, owner_run_time());
	if (likely(READ_ONCE(p->state) != MW_PROCESS_WAITING) || !list_empty_careful(&p->queue))
		return;
	raw_spin_lock(&mw_lock);
	if (p->state == MW_PROCESS_WAITING && !list_empty(&p->waiters) && !mw_user_is_queued(p)) {
		mw_user_queue(p);
		mw_owner_kick_policy();
	}
	raw_spin_unlock(&mw_lock);
}

/* Give the next RMID to @p. Returns 0 or an error of mw_rmid_alloc(). */
static int owner_give_rmid(struct mw_process *p, struct task_struct *leader, const char *comm,
			   u32 reason)
{
	u64 now = mw_stamp();
	u32 rmid, generation;
	struct mw_owner *o;
	int err;

	err = mw_rmid_alloc(&mw_pool, now, &rmid, &generation);
	if (err)
		return err;
	mw_user_update(p, leader);
	o = &mw_owners[rmid];
	o->process = p;
	o->generation = generation;
	o->tgid = p->tgid;
	o->parent_tgid = rcu_dereference_raw(leader->real_parent)->tgid;
	o->start_time_ns = leader->start_boottime;
	o->alloc_time_ns = now;
	o->late = reason == MEMWATCH_REASON_FORK ? MW_LATE_NOT : MW_LATE_NEW;
	o->unmeasured_ns = atomic64_xchg(&p->unmeasured_ns, 0);
	/* A new process counts as having run, even if it runs in this jiffy only. */
	o->given = owner_run_time() - (reason == MEMWATCH_REASON_SCAN	? MW_ASLEEP_JIFFIES
				       : reason == MEMWATCH_REASON_FORK ? 1
									: 0);
	mw_record_set_ids(o, leader);
	mw_record_set_name(o, leader, comm ?: mw_record_kept_name(p));
	mw_record_keep_name(p, NULL);
	owner_set_state(p, MW_PROCESS_MEASURED);
	mw_record_alloc(rmid, now, reason);
	records_sent += 1 + report_residue(rmid, generation, now);
	WRITE_ONCE(p->owner, (u64)generation << 32 | rmid);
	mw_owner_stats.promotions += reason == MEMWATCH_REASON_PROMOTED;
	if (o->late)
		mw_kick_raise(MW_KICK_REFRESH);
	return 0;
}

/* Number of waiting processes that the policy "active" compares to choose the next one. */
#define CHOICE 64

/* One RMID in so many is left to users who hold less than their share. */
#define RESERVE 8

/* The one that ran last, because an RMID is wasted on a process that does not run. */
static struct mw_process *owner_latest_waiter(void)
{
	struct mw_process *p, *best = NULL;
	u32 seen = 0;

	list_for_each_entry (p, &mw_waiters, waiters) {
		if (seen++ == CHOICE)
			break;
		if (!best || (long)(p->last_run - best->last_run) > 0)
			best = p;
	}
	return best;
}

/**
 * mw_owner_fair_limit - how many RMIDs one user may hold, with the policy "fair"
 * @free: number of RMIDs that are free
 *
 * A user who holds as many RMIDs as its share, or more, leaves one in 8 free. So a
 * new process of another user has an RMID from its start, and need not wait until
 * one is taken from a process of the former.
 *
 * Return: a user that holds this many RMIDs or more gets none now
 */
u32 mw_owner_fair_limit(u32 free)
{
	u32 total = mw_rmid_total(&mw_pool);

	if (mw_users_active <= 1 || free > total / RESERVE)
		return total;
	return max(total / mw_users_active, 1U);
}

/* RMIDs without an owner, whether in limbo or not. */
u32 mw_owner_free(void)
{
	return mw_rmid_total(&mw_pool) - mw_pool.used;
}

/* The process to be promoted next, NULL if there is none. */
static struct mw_process *owner_next_waiter(void)
{
	switch (mw_owner_policy) {
	case MEMWATCH_POLICY_FAIR:
		return mw_user_choose(mw_owner_fair_limit(mw_owner_free()));
	case MEMWATCH_POLICY_ACTIVE:
		return owner_latest_waiter();
	default:
		return list_first_entry_or_null(&mw_waiters, struct mw_process, waiters);
	}
}

/* Would mw_owner_promote() do something if enough RMIDs were free? */
bool mw_owner_can_promote(void)
{
	return owner_next_waiter();
}

/* Does a waiting process take precedence over one that is about to run? */
static bool owner_has_earlier_waiter(void)
{
	struct mw_process *p = owner_next_waiter();

	return p && !(mw_owner_policy == MEMWATCH_POLICY_ACTIVE && mw_process_is_idle(p, jiffies));
}

/* May a process that is new or no longer filtered have an RMID at once? */
static bool owner_may_take(const struct mw_process *p)
{
	return !owner_has_earlier_waiter() &&
	       (mw_owner_policy != MEMWATCH_POLICY_FAIR ||
		p->user->held < mw_owner_fair_limit(mw_owner_free()));
}

/* Serve the waiting processes, then @p. If no RMID is left for @p, it waits. */
static int owner_give_or_wait(struct mw_process *p, struct task_struct *leader, const char *comm,
			      u32 reason)
{
	int err = -EAGAIN;

	if (!mw_owner_free()) {
		owner_start_waiting(p);
		return -ENOSPC;
	}
	if (owner_has_earlier_waiter())
		mw_owner_promote();
	if (owner_may_take(p))
		err = owner_give_rmid(p, leader, comm, reason);
	if (err)
		owner_start_waiting(p);
	return err;
}

/* Return an RMID to the pool, where its limbo starts. False if it was free already. */
static bool owner_free_rmid(u64 owner, u32 reason)
{
	u32 rmid = mw_owner_rmid(owner);
	u64 now = mw_stamp();

	if (mw_rmid_free(&mw_pool, rmid, mw_owner_generation(owner), now))
		return false;
	mw_record_free(rmid, now, reason);
	mw_owners[rmid].process = NULL;
	mw_owner_kick_policy();
	return true;
}

/* ---------------------------------------------------- life of a process */

/**
 * mw_owner_birth - start to track a process, and give it an RMID if possible
 * @p: the process, newly allocated
 * @leader: the leader of the thread group; the caller is in an RCU read-side
 *	section
 * @reason: reason of the ALLOC record
 */
void mw_owner_birth(struct mw_process *p, struct task_struct *leader, u32 reason)
{
	lockdep_assert_held(&mw_lock);
	INIT_LIST_HEAD(&p->waiters);
	p->owner = 0;
	p->retiring = 0;
	/* What the scan finds sleeps until the hook or a tick sees it run. */
	p->last_run = reason == MEMWATCH_REASON_SCAN ? jiffies - MW_ASLEEP_JIFFIES
						     : owner_run_time();
	p->state = MW_PROCESS_FILTERED;
	mw_owner_stats.state[MW_PROCESS_FILTERED]++;
	mw_user_join(p, leader);

	if (owner_is_wanted(leader, NULL) && owner_give_or_wait(p, leader, NULL, reason) &&
	    reason == MEMWATCH_REASON_FORK)
		mw_record_exhausted(++mw_owner_stats.exhausted,
				    mw_owner_stats.state[MW_PROCESS_WAITING]);
}

/* The last thread of @p has made its last switch: the limbo of its RMID starts. */
void mw_owner_death(struct mw_process *p)
{
	u64 owner = p->owner;

	lockdep_assert_held(&mw_lock);
	switch (p->state) {
	case MW_PROCESS_MEASURED:
		WRITE_ONCE(p->owner, 0);
		list_del_init(&p->waiters);
		mw_user_hold(p, false);
		WARN_ON_ONCE(!owner_free_rmid(owner, MEMWATCH_REASON_EXIT));
		break;
	case MW_PROCESS_WAITING:
		owner_stop_waiting(p);
		break;
	case MW_PROCESS_RETIRING:
		mw_owners[p->retiring].process = NULL;
		break;
	default:
		break;
	}
	mw_owner_stats.state[p->state]--;
	/* A CPU that still has @p at hand must not take it for a waiting process. */
	WRITE_ONCE(p->state, MW_PROCESS_FILTERED);
	mw_user_leave(p);
	mw_record_keep_name(p, NULL);
}

static void owner_update_record(u32 rmid, struct task_struct *leader, const char *comm, u32 reason)
{
	mw_record_set_ids(&mw_owners[rmid], leader);
	if (!reason)
		return;
	mw_record_set_name(&mw_owners[rmid], leader, comm);
	mw_record_exec(rmid, mw_stamp(), reason);
}

/**
 * mw_owner_renew - a process may have changed its name, user or cgroup
 * @p: the process
 * @leader: the leader of its thread group; the caller is in an RCU read-side
 *	section
 * @comm: its new name, NULL if @leader has it already
 * @reason: MEMWATCH_REASON_EXEC or _COMM to send a record, 0 for none
 *
 * Return: true if the process has an RMID although a filter now excludes it. It
 * keeps the RMID until the caller or the review retires it, because other CPUs
 * may run with it.
 */
bool mw_owner_renew(struct mw_process *p, struct task_struct *leader, const char *comm, u32 reason)
{
	bool want = owner_is_wanted(leader, comm);

	lockdep_assert_held(&mw_lock);
	mw_user_update(p, leader);
	if (reason)
		mw_record_keep_name(p, comm);
	switch (p->state) {
	case MW_PROCESS_MEASURED:
		owner_update_record(mw_owner_rmid(p->owner), leader, comm, reason);
		return !want;
	case MW_PROCESS_RETIRING:
		/* Its FREE record is still to come and must have the right name. */
		owner_update_record(p->retiring, leader, comm, reason);
		return false;
	case MW_PROCESS_WAITING:
		if (!want) {
			owner_stop_waiting(p);
			owner_set_state(p, MW_PROCESS_FILTERED);
		}
		return false;
	case MW_PROCESS_FILTERED:
		if (want)
			owner_give_or_wait(p, leader, comm, MEMWATCH_REASON_PROMOTED);
		return false;
	default:
		return false;
	}
}

/* --------------------------------------------------------------- policy */

/**
 * mw_owner_promote - give RMIDs to waiting processes
 *
 * The caller calls it again later if mw_owner_can_promote() still says so.
 *
 * Return: the number of processes that were taken from the list
 */
u32 mw_owner_promote(void)
{
	u32 begin = records_sent;
	struct task_struct *leader;
	struct mw_process *p;
	u32 count = 0;

	lockdep_assert_held(&mw_lock);
	while (count < MW_PROMOTE_RECORDS && records_sent - begin < MW_PROMOTE_RECORDS &&
	       (p = owner_next_waiter())) {
		leader = mw_process_leader(p);
		if (leader && owner_give_rmid(p, leader, NULL, MEMWATCH_REASON_PROMOTED))
			break;
		/* Without a leader, which was reaped, its last thread is about to end. */
		owner_stop_waiting(p);
		count++;
	}
	return count;
}

/* A filter now excludes @p, which has an RMID. The policy takes the RMID away. */
void mw_owner_exclude(struct mw_process *p)
{
	lockdep_assert_held(&mw_lock);
	if (list_empty(&p->waiters))
		list_add_tail(&p->waiters, &excluded);
	mw_kick_raise(MW_KICK_EXPEL);
}

/* The next process for which mw_owner_exclude() was called, if it still has its RMID. */
struct mw_process *mw_owner_next_excluded(void)
{
	struct mw_process *p = list_first_entry_or_null(&excluded, struct mw_process, waiters);

	lockdep_assert_held(&mw_lock);
	if (p)
		list_del_init(&p->waiters);
	return p;
}

/*
 * Take the RMID of @p away. CPUs may run with it until mw_refresh_retired() has
 * returned; mw_owner_retired() is called after that.
 */
void mw_owner_retire(struct mw_process *p, struct mw_retire *batch)
{
	lockdep_assert_held(&mw_lock);
	batch->owner[batch->nr++] = p->owner;
	p->retiring = mw_owner_rmid(p->owner);
	WRITE_ONCE(p->owner, 0);
	list_del_init(&p->waiters);
	owner_set_state(p, MW_PROCESS_RETIRING);
}

/* No CPU runs with the RMIDs of @batch any more: free them. */
void mw_owner_retired(const struct mw_retire *batch)
{
	u32 i;

	lockdep_assert_held(&mw_lock);
	for (i = 0; i < batch->nr; i++) {
		struct mw_process *p = mw_owners[mw_owner_rmid(batch->owner[i])].process;

		if (!owner_free_rmid(batch->owner[i], batch->reason))
			continue;
		if (batch->reason == MEMWATCH_REASON_REVOKED)
			mw_owner_stats.revocations++;
		if (!p)
			continue;
		p->retiring = 0;
		if (batch->reason == MEMWATCH_REASON_REVOKED)
			owner_start_waiting(p);
		else
			owner_set_state(p, MW_PROCESS_FILTERED);
	}
}

/* -------------------------------------------------------- stop and dump */

/* Take all RMIDs back. No CPU runs with any of them, and none is given out. */
void mw_owner_stop(void)
{
	unsigned long flags;
	u32 rmid;

	for (rmid = 1; rmid <= mw_pool.nr; rmid++) {
		struct mw_owner *o = &mw_owners[rmid];

		raw_spin_lock_irqsave(&mw_lock, flags);
		if (mw_rmid_in_use(&mw_pool, rmid)) {
			if (o->process) {
				WRITE_ONCE(o->process->owner, 0);
				o->process->retiring = 0;
				if (o->process->state == MW_PROCESS_MEASURED)
					list_del_init(&o->process->waiters);
				owner_set_state(o->process, MW_PROCESS_FILTERED);
			}
			owner_free_rmid((u64)o->generation << 32 | rmid, MEMWATCH_REASON_STOP);
		}
		raw_spin_unlock_irqrestore(&mw_lock, flags);
	}
}

/*
 * Send the present state. The lock is taken for each RMID anew, so that a dump
 * does not delay context switches. What changes meanwhile has a record of its
 * own with a later time.
 */
void mw_owner_dump(struct memwatch_dump *dump)
{
	static u64 sequence;
	struct memwatch_record_dump rec = {};
	unsigned long flags;
	u32 rmid, state;

	raw_spin_lock_irqsave(&mw_lock, flags);
	rec.sequence = ++sequence;
	mw_record_dump(&rec, MEMWATCH_RECORD_DUMP_BEGIN);
	raw_spin_unlock_irqrestore(&mw_lock, flags);

	for (rmid = 1; rmid <= mw_pool.nr; rmid++) {
		raw_spin_lock_irqsave(&mw_lock, flags);
		if (mw_rmid_in_use(&mw_pool, rmid)) {
			mw_record_existing(rmid, mw_stamp());
			rec.count++;
		}
		raw_spin_unlock_irqrestore(&mw_lock, flags);
	}

	raw_spin_lock_irqsave(&mw_lock, flags);
	for (state = 0; state < MW_PROCESS_STATES; state++)
		if (state != MW_PROCESS_MEASURED)
			rec.unmeasured += mw_owner_stats.state[state];
	mw_record_dump(&rec, MEMWATCH_RECORD_DUMP_END);
	raw_spin_unlock_irqrestore(&mw_lock, flags);

	dump->sequence = rec.sequence;
	dump->count = rec.count;
	dump->unmeasured = rec.unmeasured;
}
