// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Who owns which RMID. A process is in exactly one state at any time, see
 * enum mw_process_state; every change of state happens here, under mw_lock,
 * and so does every record about an RMID, which is why the records of one RMID
 * are in order: alloc, existing and exec, free.
 */
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "clock.h"
#include "fail.h"
#include "filter.h"
#include "owner.h"
#include "policy.h"
#include "rdt-read.h"
#include "trace.h"

struct mw_rmid_pool mw_pool;
struct mw_owner *mw_owners;
struct mw_owner_stats mw_owner_stats;
LIST_HEAD(mw_waiters);

static ulong limbo_occupancy;
module_param(limbo_occupancy, ulong, 0400);
MODULE_PARM_DESC(limbo_occupancy,
		 "an RMID that holds more bytes of cache stays in limbo, for a second at most");

/* Bytes of cache that each RMID holds, all domains together. */
static atomic64_t *dirt;

int mw_owner_init(u32 nr_rmids, u32 first_rmid, u64 limbo_ns)
{
	struct mw_rmid *entry;

	entry = mw_fail(MW_FAIL_POOL) ? NULL : kvcalloc(nr_rmids + 1, sizeof(*entry), GFP_KERNEL);
	mw_owners = kvcalloc(nr_rmids + 1, sizeof(*mw_owners), GFP_KERNEL);
	dirt = kvcalloc(nr_rmids + 1, sizeof(*dirt), GFP_KERNEL);
	if (!entry || !mw_owners || !dirt) {
		kvfree(entry);
		kvfree(mw_owners);
		kvfree(dirt);
		return -ENOMEM;
	}
	mw_rmid_pool_init(&mw_pool, entry, nr_rmids, limbo_ns);
	mw_rmid_pool_reserve(&mw_pool, first_rmid - 1);
	BUILD_BUG_ON(sizeof(*dirt) != sizeof(*mw_pool.dirt));
	mw_pool.dirt = (const u64 *)dirt;
	mw_pool.clean = limbo_occupancy;
	return 0;
}

void mw_owner_uninit(void)
{
	kvfree(mw_pool.entry);
	kvfree(mw_owners);
	kvfree(dirt);
}

/* An RMID holds so many bytes of cache more, in one domain. Any context. */
void mw_owner_dirt(u32 rmid, s64 bytes)
{
	if (bytes)
		atomic64_add(bytes, &dirt[rmid]);
}

/* No reading is going on. */
void mw_owner_forget_dirt(void)
{
	memset(dirt, 0, (mw_pool.nr + 1) * sizeof(*dirt));
}

size_t mw_owner_memory(void)
{
	return (mw_pool.nr + 1) *
	       (sizeof(struct mw_rmid) + sizeof(struct mw_owner) + sizeof(*dirt));
}

/*
 * The time of a record about an RMID. Strictly increasing: two records about
 * one RMID may come from two CPUs, whose clocks agree only nearly, and a reader
 * sorts them by time alone.
 */
u64 mw_stamp(void)
{
	static u64 last;
	u64 now = mw_now();

	lockdep_assert_held(&mw_lock);
	if ((s64)(now - last) <= 0)
		now = last + 1;
	last = now;
	return now;
}

/* ------------------------------------------------------------- records */

static void fill(struct memwatch_record_rmid *rec, u32 type, u32 rmid, u64 now, u32 reason)
{
	const struct mw_owner *o = &mw_owners[rmid];

	*rec = (struct memwatch_record_rmid){
		.h = { .time_ns = now,
		       .type = type,
		       .size = sizeof(*rec),
		       .cpu = raw_smp_processor_id() },
		.rmid = rmid,
		.generation = o->generation,
		.tgid = o->tgid,
		.parent_tgid = o->parent_tgid,
		.start_time_ns = o->start_time_ns,
		.alloc_time_ns = o->alloc_time_ns,
		.cgroup_id = o->cgroup_id,
		.uid = o->uid,
		.reason = reason,
	};
	memcpy(rec->comm, o->comm, MEMWATCH_COMM_LEN);
}

static void report_alloc(u32 rmid, u64 now, u32 reason)
{
	struct memwatch_record_rmid rec;

	if (!trace_memwatch_rmid_alloc_enabled())
		return;
	fill(&rec, MEMWATCH_RECORD_RMID_ALLOC, rmid, now, reason);
	trace_memwatch_rmid_alloc(&rec);
}

static void report_existing(u32 rmid, u64 now)
{
	struct memwatch_record_rmid rec;

	if (!trace_memwatch_rmid_existing_enabled())
		return;
	fill(&rec, MEMWATCH_RECORD_RMID_EXISTING, rmid, now, MEMWATCH_REASON_SCAN);
	trace_memwatch_rmid_existing(&rec);
}

static void report_exec(u32 rmid, u64 now, u32 reason)
{
	struct memwatch_record_rmid rec;

	if (!trace_memwatch_rmid_exec_enabled())
		return;
	fill(&rec, MEMWATCH_RECORD_RMID_EXEC, rmid, now, reason);
	trace_memwatch_rmid_exec(&rec);
}

static void report_free(u32 rmid, u64 now, u32 reason)
{
	struct memwatch_record_rmid rec;

	if (!trace_memwatch_rmid_free_enabled())
		return;
	fill(&rec, MEMWATCH_RECORD_RMID_FREE, rmid, now, reason);
	trace_memwatch_rmid_free(&rec);
}

/* ------------------------------------------------------------ identity */

static u64 cgroup_of(const struct task_struct *task)
{
#ifdef CONFIG_CGROUPS
	/* task_dfl_cgroup() would want lockdep symbols that are not exported. */
	return cgroup_id(rcu_dereference_raw(task->cgroups)->dfl_cgrp);
#else
	return 0;
#endif
}

/*
 * The latest names of processes that have no RMID. The tracepoint of a rename
 * comes before the change, and an RMID may be given in between, when the leader
 * still bears its old name and nobody is going to report the new one again.
 */
static struct new_name {
	const struct mw_process *process;
	char comm[MEMWATCH_COMM_LEN];
} new_names[16];

static struct new_name *find_name(const struct mw_process *p)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(new_names); i++)
		if (new_names[i].process == p)
			return &new_names[i];
	return NULL;
}

/* @comm is NULL when the name of the leader is good. */
static void note_name(const struct mw_process *p, const char *comm)
{
	static u32 next;
	struct new_name *name = find_name(p);

	if (!comm) {
		if (name)
			name->process = NULL;
		return;
	}
	if (!name)
		name = &new_names[next++ % ARRAY_SIZE(new_names)];
	name->process = p;
	strscpy_pad(name->comm, comm, MEMWATCH_COMM_LEN);
}

static const char *noted_name(const struct mw_process *p)
{
	const struct new_name *name = find_name(p);

	return name ? name->comm : NULL;
}

/* What may change during a life without anybody telling. */
static void describe(struct mw_owner *o, struct task_struct *leader)
{
	o->cgroup_id = cgroup_of(leader);
	o->uid = __kuid_val(task_uid(leader));
}

/*
 * The name, which changes only together with a record: what a dump says must
 * follow from the stream. No task_lock() around comm: it sleeps on PREEMPT_RT.
 * A name that is being written may come out mixed; the rename record that
 * follows puts it right.
 */
static void set_name(struct mw_owner *o, struct task_struct *leader, const char *comm)
{
	strscpy_pad(o->comm, comm ? comm : leader->comm, MEMWATCH_COMM_LEN);
}

static bool wanted(struct task_struct *leader, const char *comm)
{
	struct mw_owner o;

	if (!mw_filter_count())
		return true;
	describe(&o, leader);
	set_name(&o, leader, comm);
	return mw_filter_match(o.cgroup_id, o.uid, o.comm);
}

/* ------------------------------------------------------------- states */

static void set_state(struct mw_process *p, enum mw_process_state state)
{
	mw_owner_stats.state[p->state]--;
	mw_owner_stats.state[state]++;
	p->state = state;
}

/* To the end of the queue. The kick is spared while somebody is on the way. */
static void wait(struct mw_process *p)
{
	set_state(p, MW_PROCESS_WAITING);
	list_add_tail(&p->waiters, &mw_waiters);
	mw_policy_waiters();
}

static void stop_waiting(struct mw_process *p)
{
	list_del_init(&p->waiters);
}

/* Give @p the next RMID: 0, or why not as of mw_rmid_alloc(). */
static int give(struct mw_process *p, struct task_struct *leader, const char *comm, u32 reason)
{
	u64 now = mw_stamp();
	u32 rmid, generation;
	struct mw_owner *o;
	int err;

	err = mw_rmid_alloc(&mw_pool, now, &rmid, &generation);
	if (err)
		return err;

	o = &mw_owners[rmid];
	o->process = p;
	o->generation = generation;
	o->tgid = p->tgid;
	o->parent_tgid = rcu_dereference_raw(leader->real_parent)->tgid;
	o->start_time_ns = leader->start_boottime;
	o->alloc_time_ns = now;
	o->last_run = p->last_run;
	describe(o, leader);
	set_name(o, leader, comm ?: noted_name(p));
	note_name(p, NULL);
	set_state(p, MW_PROCESS_MEASURED);
	mw_owner_stats.promotions += reason == MEMWATCH_REASON_PROMOTED;
	report_alloc(rmid, now, reason);
	mw_rdt_read_residue(rmid, generation, now);
	WRITE_ONCE(p->owner, (u64)generation << 32 | rmid);
	return 0;
}

/* How many of those who wait are compared when one of them is chosen. */
#define CHOICE 64

/*
 * Who is next? The one that waits for longest; with the policy "active", the
 * one that ran last, for an RMID is wasted on a process that does not run.
 */
static struct mw_process *next_waiter(void)
{
	struct mw_process *best = list_first_entry(&mw_waiters, struct mw_process, waiters);
	struct mw_process *p;
	u32 seen = 0;

	if (!static_branch_unlikely(&mw_last_run_key))
		return best;
	list_for_each_entry (p, &mw_waiters, waiters) {
		if (seen++ == CHOICE)
			break;
		if ((s32)(p->last_run - best->last_run) > 0)
			best = p;
	}
	return best;
}

/* Would it be wrong to serve a process that is about to run before all others? */
static bool somebody_precedes(void)
{
	if (list_empty(&mw_waiters))
		return false;
	return !static_branch_unlikely(&mw_last_run_key) ||
	       !mw_policy_is_idle(next_waiter(), jiffies);
}

/* Those who wait come first, then @p; if there is nothing for it, it waits. */
static int give_or_wait(struct mw_process *p, struct task_struct *leader, const char *comm,
			u32 reason)
{
	int err = -EAGAIN;

	if (somebody_precedes())
		mw_owner_promote(MW_PROMOTE_MOST);
	if (!somebody_precedes())
		err = give(p, leader, comm, reason);
	if (err)
		wait(p);
	return err;
}

/* Back into the pool: its limbo starts. False if it was back already. */
static bool put_back(u64 owner, u32 reason)
{
	u32 rmid = mw_owner_rmid(owner);
	u64 now = mw_stamp();

	if (mw_rmid_free(&mw_pool, rmid, mw_owner_generation(owner), now))
		return false;
	report_free(rmid, now, reason);
	mw_owners[rmid].process = NULL;
	mw_policy_waiters();
	return true;
}

/* ---------------------------------------------------- life of a process */

/**
 * mw_owner_birth - a process is tracked from now on
 * @p: the process, fresh
 * @leader: the leader of the thread group; the caller is in an RCU read-side
 *	section
 * @reason: why it is given an RMID, if it is
 */
void mw_owner_birth(struct mw_process *p, struct task_struct *leader, u32 reason)
{
	lockdep_assert_held(&mw_lock);
	INIT_LIST_HEAD(&p->waiters);
	p->owner = 0;
	p->retiring = 0;
	p->last_run = jiffies;
	p->state = MW_PROCESS_FILTERED;
	mw_owner_stats.state[MW_PROCESS_FILTERED]++;

	if (wanted(leader, NULL) && give_or_wait(p, leader, NULL, reason))
		mw_owner_stats.exhausted += reason == MEMWATCH_REASON_FORK;
}

/* The last thread of @p has made its last switch: the limbo starts now. */
void mw_owner_death(struct mw_process *p)
{
	u64 owner = p->owner;

	lockdep_assert_held(&mw_lock);
	switch (p->state) {
	case MW_PROCESS_MEASURED:
		WRITE_ONCE(p->owner, 0);
		WARN_ON_ONCE(!put_back(owner, MEMWATCH_REASON_EXIT));
		break;
	case MW_PROCESS_WAITING:
		stop_waiting(p);
		break;
	case MW_PROCESS_RETIRING:
		mw_owners[p->retiring].process = NULL;
		break;
	default:
		break;
	}
	mw_owner_stats.state[p->state]--;
	note_name(p, NULL);
}

static void renew(u32 rmid, struct task_struct *leader, const char *comm, u32 reason)
{
	describe(&mw_owners[rmid], leader);
	if (!reason)
		return;
	set_name(&mw_owners[rmid], leader, comm);
	report_exec(rmid, mw_stamp(), reason);
}

/**
 * mw_owner_renew - a process may have changed its name, user or cgroup
 * @p: the process
 * @leader: the leader of its thread group; the caller is in an RCU read-side
 *	section
 * @comm: its new name, NULL if @leader bears it already
 * @reason: MEMWATCH_REASON_EXEC or _COMM to send a record, 0 for none
 *
 * Return: true if a filter excludes it now and it has an RMID. It keeps that
 * until the caller or the review retires it: other CPUs may run with it.
 */
bool mw_owner_renew(struct mw_process *p, struct task_struct *leader, const char *comm, u32 reason)
{
	bool want = wanted(leader, comm);

	lockdep_assert_held(&mw_lock);
	if (reason)
		note_name(p, comm);
	switch (p->state) {
	case MW_PROCESS_MEASURED:
		renew(mw_owner_rmid(p->owner), leader, comm, reason);
		return !want;
	case MW_PROCESS_RETIRING:
		/* Its FREE is still to come, and must bear the right name. */
		renew(p->retiring, leader, comm, reason);
		return false;
	case MW_PROCESS_WAITING:
		if (!want) {
			stop_waiting(p);
			set_state(p, MW_PROCESS_FILTERED);
		}
		return false;
	case MW_PROCESS_FILTERED:
		if (want)
			give_or_wait(p, leader, comm, MEMWATCH_REASON_PROMOTED);
		return false;
	default:
		return false;
	}
}

/* --------------------------------------------------------------- policy */

/**
 * mw_owner_promote - give RMIDs to those who wait
 * @most: at most so many, to bound the time under the lock
 *
 * Return: how many
 */
u32 mw_owner_promote(u32 most)
{
	struct task_struct *leader;
	struct mw_process *p;
	u32 count = 0;

	lockdep_assert_held(&mw_lock);
	while (count < most && !list_empty(&mw_waiters)) {
		p = next_waiter();
		leader = mw_process_leader(p);
		if (leader && give(p, leader, NULL, MEMWATCH_REASON_PROMOTED))
			break;
		/* No leader: reaped, its last thread is about to go. Not worth it. */
		stop_waiting(p);
		count++;
	}
	if (count)
		mw_policy_promoted();
	return count;
}

/* Take its RMID from @p. CPUs may run with it until mw_switch_refresh_all(). */
void mw_owner_retire(struct mw_process *p, struct mw_retire *batch)
{
	lockdep_assert_held(&mw_lock);
	batch->owner[batch->nr++] = p->owner;
	p->retiring = mw_owner_rmid(p->owner);
	WRITE_ONCE(p->owner, 0);
	set_state(p, MW_PROCESS_RETIRING);
}

/* No CPU runs with them any more: only now they are free, and the limbo starts. */
void mw_owner_retired(const struct mw_retire *batch)
{
	u32 i;

	lockdep_assert_held(&mw_lock);
	for (i = 0; i < batch->nr; i++) {
		struct mw_process *p = mw_owners[mw_owner_rmid(batch->owner[i])].process;

		if (!put_back(batch->owner[i], batch->reason))
			continue;
		if (batch->reason == MEMWATCH_REASON_REVOKED)
			mw_owner_stats.revocations++;
		if (!p)
			continue;
		p->retiring = 0;
		if (batch->reason == MEMWATCH_REASON_REVOKED)
			wait(p);
		else
			set_state(p, MW_PROCESS_FILTERED);
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
				set_state(o->process, MW_PROCESS_FILTERED);
			}
			put_back((u64)o->generation << 32 | rmid, MEMWATCH_REASON_STOP);
		}
		raw_spin_unlock_irqrestore(&mw_lock, flags);
	}
}

static void dump_marker(struct memwatch_record_dump *rec, u32 type)
{
	rec->h = (struct memwatch_record_header){
		.time_ns = mw_stamp(),
		.type = type,
		.size = sizeof(*rec),
		.cpu = raw_smp_processor_id(),
	};
	if (type == MEMWATCH_RECORD_DUMP_BEGIN)
		trace_memwatch_dump_begin(rec);
	else
		trace_memwatch_dump_end(rec);
}

/*
 * Send the present state. The lock is taken per RMID, so that a dump never
 * holds up a context switch for long; what changes meanwhile has its own record
 * with its own, later, time.
 */
void mw_owner_dump(struct memwatch_dump *dump)
{
	static u64 sequence;
	struct memwatch_record_dump rec = {};
	unsigned long flags;
	u32 rmid, state;

	raw_spin_lock_irqsave(&mw_lock, flags);
	rec.sequence = ++sequence;
	dump_marker(&rec, MEMWATCH_RECORD_DUMP_BEGIN);
	raw_spin_unlock_irqrestore(&mw_lock, flags);

	for (rmid = 1; rmid <= mw_pool.nr; rmid++) {
		raw_spin_lock_irqsave(&mw_lock, flags);
		if (mw_rmid_in_use(&mw_pool, rmid)) {
			report_existing(rmid, mw_stamp());
			rec.count++;
		}
		raw_spin_unlock_irqrestore(&mw_lock, flags);
	}

	raw_spin_lock_irqsave(&mw_lock, flags);
	for (state = 0; state < MW_PROCESS_STATES; state++)
		if (state != MW_PROCESS_MEASURED)
			rec.unmeasured += mw_owner_stats.state[state];
	dump_marker(&rec, MEMWATCH_RECORD_DUMP_END);
	raw_spin_unlock_irqrestore(&mw_lock, flags);

	dump->sequence = rec.sequence;
	dump->count = rec.count;
	dump->unmeasured = rec.unmeasured;
}
