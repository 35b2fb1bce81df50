// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Processes and their threads.
 *
 * A thread counts from its fork (or from the scan that found it) to its last
 * switch, the one in state TASK_DEAD. So a zombie holds nothing, a dead leader
 * changes nothing, and a thread that still runs through its exit keeps the RMID
 * it runs with. The table of threads makes that exact: a thread is inserted
 * once however often it is seen, and removed once.
 */
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "compat/sched.h"
#include "fail.h"
#include "owner.h"
#include "policy.h"
#include "track.h"
#include "objcache.h"

/**
 * struct mw_thread - a thread that has not made its last switch
 * @next: in its bucket
 * @task: the key, never dereferenced
 * @process: its process; links free and buried objects
 */
struct mw_thread {
	struct mw_thread *next;
	const void *task;
	struct mw_process *process;
};

#define THREAD_BITS 12

/* Free objects at hand: a fork storm until the worker is scheduled. */
#define STASH_LOW (128 + 32 * num_possible_cpus())

DEFINE_RAW_SPINLOCK(mw_lock);
struct mw_process **mw_processes;
static struct mw_thread **threads;

/* Under mw_lock. */
static struct mw_stash process_stash;
static struct mw_stash thread_stash;
static bool tracking;
static bool missed;
static u64 untracked;

static u32 thread_hash(const void *task)
{
	return ((unsigned long)task * GOLDEN_RATIO_64) >> (64 - THREAD_BITS);
}

static struct mw_thread *thread_find(const void *task)
{
	struct mw_thread *t = READ_ONCE(threads[thread_hash(task)]);

	while (t && t->task != task)
		t = READ_ONCE(t->next);
	return t;
}

/* The task may be released at once, so only under RCU. NULL if it is reaped. */
struct task_struct *mw_process_leader(const struct mw_process *p)
{
	struct task_struct *leader = pid_task(find_pid_ns(p->tgid, &init_pid_ns), PIDTYPE_TGID);

	return leader && leader->signal == p->signal ? leader : NULL;
}

/* --------------------------------------------------------------- tables */

/* smp_store_release() pairs with READ_ONCE() of dependent loads in readers. */
static void insert_process(struct mw_process *p)
{
	struct mw_process **bucket = &mw_processes[mw_process_hash(p->signal)];

	p->next = *bucket;
	smp_store_release(bucket, p);
}

static void remove_process(struct mw_process *p)
{
	struct mw_process **link = &mw_processes[mw_process_hash(p->signal)];

	while (*link != p)
		link = &(*link)->next;
	WRITE_ONCE(*link, p->next);
}

static void insert_thread(struct mw_thread *t)
{
	struct mw_thread **bucket = &threads[thread_hash(t->task)];

	t->next = *bucket;
	smp_store_release(bucket, t);
}

static void remove_thread(struct mw_thread *t)
{
	struct mw_thread **link = &threads[thread_hash(t->task)];

	while (*link != t)
		link = &(*link)->next;
	WRITE_ONCE(*link, t->next);
}

/* No object at hand. The worker fetches some and scans for what was missed. */
static void *miss(void)
{
	untracked++;
	missed = true;
	mw_policy_upkeep();
	return NULL;
}

static struct mw_process *add_process(struct task_struct *task, u32 reason)
{
	struct mw_process *p = mw_stash_get(&process_stash);

	if (!p)
		return miss();
	p->signal = task->signal;
	p->tgid = task->tgid;
	p->nr_threads = 0;
	mw_owner_birth(p, task->group_leader, reason);
	insert_process(p);
	return p;
}

static struct mw_process *add_thread(struct task_struct *task, u32 reason)
{
	struct mw_thread *t = mw_stash_get(&thread_stash);
	struct mw_process *p;

	if (!t)
		return miss();
	p = mw_process_find(task) ?: add_process(task, reason);
	if (!p) {
		mw_stash_put(&thread_stash, t);
		return NULL;
	}
	t->task = task;
	t->process = p;
	p->nr_threads++;
	insert_thread(t);
	return p;
}

/*
 * Track @task, once. Under mw_lock, TASK_DEAD is either not set yet, then the
 * last switch comes later and finds the thread; or it is set, then that switch
 * has been or will be without effect, and the thread must not be inserted.
 *
 * Return: its process if it was not known before
 */
static struct mw_process *track(struct task_struct *task, u32 reason)
{
	struct mw_process *p;

	lockdep_assert_held(&mw_lock);
	if (!tracking || mw_task_is_dead(task) || thread_find(task))
		return NULL;
	p = add_thread(task, reason);
	if (mw_stash_wants_upkeep(&process_stash) || mw_stash_wants_upkeep(&thread_stash))
		mw_policy_upkeep();
	return p;
}

/* ---------------------------------------------------------------- hooks */

/* Before the child runs for the first time, so it never runs unassigned. */
void mw_process_fork(struct task_struct *child)
{
	unsigned long flags;

	if (child->flags & PF_KTHREAD)
		return;
	rcu_read_lock();
	raw_spin_lock_irqsave(&mw_lock, flags);
	track(child, MEMWATCH_REASON_FORK);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	rcu_read_unlock();
}

/*
 * @task is current, and the leader: de_thread() has made it so. A kernel thread
 * that executes a user program is seen here for the first time.
 */
void mw_process_exec(struct task_struct *task)
{
	struct mw_process *p;
	unsigned long flags;

	rcu_read_lock();
	raw_spin_lock_irqsave(&mw_lock, flags);
	if (!track(task, MEMWATCH_REASON_FORK)) {
		p = tracking ? mw_process_find(task) : NULL;
		if (p && mw_owner_renew(p, task, NULL, MEMWATCH_REASON_EXEC))
			mw_policy_review();
	}
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	rcu_read_unlock();
}

/*
 * Called before the name changes. A process has the name of its leader. The
 * rename inside execve() is skipped: mw_process_exec() is about to report it.
 */
void mw_process_rename(struct task_struct *task, const char *comm)
{
	struct mw_process *p;
	unsigned long flags;

	if (!thread_group_leader(task) || (task == current && mw_task_in_exec(task)))
		return;
	rcu_read_lock();
	raw_spin_lock_irqsave(&mw_lock, flags);
	p = tracking ? mw_process_find(task) : NULL;
	if (p && mw_owner_renew(p, task, comm, MEMWATCH_REASON_COMM))
		mw_policy_review();
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	rcu_read_unlock();
}

/*
 * From the switch hook: an I/O worker is about to run. It shares the process of
 * whoever made it, without a sched_process_fork: create_io_thread() has none.
 * If that process is not known, this is no place to make it known: the worker
 * may have been released, and its leader with it.
 */
void mw_process_adopt(struct task_struct *task)
{
	if (likely(thread_find(task)))
		return;
	raw_spin_lock(&mw_lock);
	if (mw_process_find(task))
		track(task, MEMWATCH_REASON_FORK);
	raw_spin_unlock(&mw_lock);
}

/* From the switch hook: @task has left its CPU for good. */
void mw_process_thread_gone(const struct task_struct *task)
{
	struct mw_process *p;
	struct mw_thread *t;

	if (task->flags & PF_KTHREAD)
		return;
	raw_spin_lock(&mw_lock);
	t = thread_find(task);
	if (t) {
		p = t->process;
		remove_thread(t);
		mw_stash_bury(&thread_stash, t);
		if (!--p->nr_threads) {
			remove_process(p);
			mw_owner_death(p);
			mw_stash_bury(&process_stash, p);
		}
		if (mw_stash_wants_upkeep(&process_stash) || mw_stash_wants_upkeep(&thread_stash))
			mw_policy_upkeep();
	}
	raw_spin_unlock(&mw_lock);
}

/* ----------------------------------------------------------------- scan */

/* Count the threads, or track them. Kernel threads are nobody's. */
static unsigned int for_all_threads(bool (*visit)(struct task_struct *task))
{
	struct task_struct *leader, *task;
	unsigned int count = 0;

	rcu_read_lock();
	for_each_process_thread (leader, task)
		if (!(task->flags & PF_KTHREAD))
			count += visit(task);
	rcu_read_unlock();
	return count;
}

static bool count_thread(struct task_struct *task)
{
	return true;
}

static bool track_thread(struct task_struct *task)
{
	unsigned long flags;
	bool found;

	raw_spin_lock_irqsave(&mw_lock, flags);
	found = track(task, MEMWATCH_REASON_SCAN);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	return found;
}

static bool clear_missed(void)
{
	unsigned long flags;
	bool was;

	raw_spin_lock_irqsave(&mw_lock, flags);
	was = missed;
	missed = false;
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	return was;
}

/* Enough objects for @nr threads, known ones included. */
static int refill_for(struct mw_stash *stash, unsigned int nr)
{
	unsigned int known = READ_ONCE(stash->nr) - READ_ONCE(stash->nr_free);

	return mw_stash_refill(stash, stash->low + (nr > known ? nr - known : 0));
}

/*
 * Find what the probes have not seen. They are registered, so what is born
 * meanwhile is theirs, and a second pass finds nothing but threads that the
 * first overlooked because the list changed under it.
 */
int mw_process_scan(void)
{
	unsigned int nr, pass;
	int err = 0;

	for (pass = 0; pass < 8 && !err; pass++) {
		clear_missed();
		nr = for_all_threads(count_thread);
		err = refill_for(&thread_stash, nr) ?: refill_for(&process_stash, nr);
		if (!for_all_threads(track_thread) && pass && !READ_ONCE(missed))
			break;
	}
	mw_stash_recycle(&thread_stash, NULL);
	mw_stash_recycle(&process_stash, NULL);
	return err;
}

/*
 * Look again at the processes of one bucket: name, user, cgroup, filters.
 *
 * Return: false if @batch is full, and the bucket has to be visited again
 */
bool mw_process_review(u32 bucket, struct mw_retire *batch)
{
	struct task_struct *leader;
	struct mw_process *p;
	unsigned long flags;
	bool done = true;

	if (!READ_ONCE(mw_processes[bucket]))
		return true;
	rcu_read_lock();
	raw_spin_lock_irqsave(&mw_lock, flags);
	for (p = tracking ? mw_processes[bucket] : NULL; p && done; p = p->next) {
		leader = mw_process_leader(p);
		if (!leader || !mw_owner_renew(p, leader, NULL, 0))
			continue;
		done = batch->nr < MW_RETIRE_BATCH;
		if (done)
			mw_owner_retire(p, batch);
	}
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	rcu_read_unlock();
	return done;
}

/* The worker's share: see objcache.h. May sleep. */
void mw_process_upkeep(void)
{
	void *dead_processes, *dead_threads;

	mw_stash_refill(&process_stash, 2 * process_stash.low);
	mw_stash_refill(&thread_stash, 2 * thread_stash.low);
	if (READ_ONCE(missed))
		mw_process_scan();

	dead_processes = mw_stash_exhume(&process_stash);
	dead_threads = mw_stash_exhume(&thread_stash);
	if (dead_processes || dead_threads) {
		synchronize_rcu();
		mw_stash_recycle(&process_stash, dead_processes);
		mw_stash_recycle(&thread_stash, dead_threads);
	}
}

/* ----------------------------------------------------------- start, stop */

static int init_stashes(void)
{
	int err;

	err = mw_fail(MW_FAIL_STASH_PROCESS)
		      ? -ENOMEM
		      : mw_stash_init(&process_stash, "memwatch_process", sizeof(struct mw_process),
				      offsetof(struct mw_process, waiters), STASH_LOW);
	if (err)
		return err;
	err = mw_fail(MW_FAIL_STASH_THREAD)
		      ? -ENOMEM
		      : mw_stash_init(&thread_stash, "memwatch_thread", sizeof(struct mw_thread),
				      offsetof(struct mw_thread, process), STASH_LOW);
	if (err)
		mw_stash_uninit(&process_stash);
	return err;
}

int mw_process_arm(void)
{
	int err;

	mw_processes = kvcalloc(1 << MW_PROCESS_BITS, sizeof(*mw_processes), GFP_KERNEL);
	threads = kvcalloc(1 << THREAD_BITS, sizeof(*threads), GFP_KERNEL);
	err = !mw_processes || !threads || mw_fail(MW_FAIL_TABLES) ? -ENOMEM : init_stashes();
	if (err) {
		kvfree(mw_processes);
		kvfree(threads);
		mw_processes = NULL;
		threads = NULL;
		return err;
	}
	return 0;
}

void mw_process_track(bool on)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&mw_lock, flags);
	tracking = on;
	raw_spin_unlock_irqrestore(&mw_lock, flags);
}

static void forget_threads(u32 bucket)
{
	struct mw_thread *t;
	unsigned long flags;

	raw_spin_lock_irqsave(&mw_lock, flags);
	while ((t = threads[bucket])) {
		threads[bucket] = t->next;
		mw_stash_put(&thread_stash, t);
	}
	raw_spin_unlock_irqrestore(&mw_lock, flags);
}

static void forget_processes(u32 bucket)
{
	struct mw_process *p;
	unsigned long flags;

	raw_spin_lock_irqsave(&mw_lock, flags);
	while ((p = mw_processes[bucket])) {
		mw_processes[bucket] = p->next;
		mw_owner_death(p);
		mw_stash_put(&process_stash, p);
	}
	raw_spin_unlock_irqrestore(&mw_lock, flags);
}

/* All probes are gone and a grace period has passed: nobody else looks. */
void mw_process_disarm(void)
{
	u32 i;

	for (i = 0; i < 1 << THREAD_BITS; i++)
		forget_threads(i);
	for (i = 0; i < 1 << MW_PROCESS_BITS; i++)
		forget_processes(i);
	mw_stash_uninit(&thread_stash);
	mw_stash_uninit(&process_stash);
	kvfree(threads);
	kvfree(mw_processes);
	threads = NULL;
	mw_processes = NULL;
}

size_t mw_process_memory(void)
{
	unsigned long flags;
	size_t bytes = 0;

	raw_spin_lock_irqsave(&mw_lock, flags);
	if (mw_processes)
		bytes = (sizeof(void *) << MW_PROCESS_BITS) + (sizeof(void *) << THREAD_BITS) +
			process_stash.nr * sizeof(struct mw_process) +
			thread_stash.nr * sizeof(struct mw_thread);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	return bytes;
}

u64 mw_process_untracked(void)
{
	return READ_ONCE(untracked);
}
