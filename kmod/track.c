// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Tracking of processes and threads, see track.h.
 *
 * A thread counts from its fork, or from the scan that found it, to its last
 * context switch, which it makes in the state TASK_DEAD. So a zombie holds no
 * RMID, the exit of a leader changes nothing, and a thread that executes its
 * exit keeps its RMID until it leaves the CPU. The table of threads makes
 * the count exact: a thread is inserted once, however often it is seen, and
 * removed once.
 */
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "compat/sched.h"
#include "fail.h"
#include "kick.h"
#include "lock.h"
#include "objcache.h"
#include "owner.h"
#include "process.h"
#include "track.h"
#include "user.h"

/**
 * struct mw_thread - a thread that has not made its last switch
 * @next: next thread in the same bucket of the table
 * @task: the key, never dereferenced
 * @process: its process; links free objects in the object cache
 */
struct mw_thread {
	struct mw_thread *next;
	const void *task;
	struct mw_process *process;
};

/* Free objects to keep: enough for a fork storm until the worker runs. */
#define CACHE_LOW (128 + 32 * num_possible_cpus())

/* As many buckets as the table of processes has. */
static struct mw_thread **threads;
static u32 thread_shift;

/* Guarded by mw_lock. */
static struct mw_objcache process_cache;
static struct mw_objcache thread_cache;
static bool tracking;
static bool missed;
static u64 untracked;

static u32 track_hash_task(const void *task)
{
	return ((unsigned long)task * GOLDEN_RATIO_64) >> thread_shift;
}

static struct mw_thread *track_find_thread(const void *task)
{
	struct mw_thread *t = READ_ONCE(threads[track_hash_task(task)]);

	while (t && t->task != task)
		t = READ_ONCE(t->next);
	return t;
}

/* --------------------------------------------------------------- tables */

/* smp_store_release() pairs with READ_ONCE() of dependent loads in readers. */
static void track_insert_thread(struct mw_thread *t)
{
	struct mw_thread **bucket = &threads[track_hash_task(t->task)];

	t->next = *bucket;
	smp_store_release(bucket, t);
}

static void track_remove_thread(struct mw_thread *t)
{
	struct mw_thread **link = &threads[track_hash_task(t->task)];

	while (*link != t)
		link = &(*link)->next;
	WRITE_ONCE(*link, t->next);
}

/* The object cache is empty. The worker refills it and scans for what was missed. */
static void *track_note_missed(void)
{
	untracked++;
	missed = true;
	mw_kick_raise(MW_KICK_REFILL);
	return NULL;
}

static void track_kick_refill(void)
{
	if (mw_objcache_wants_refill(&process_cache) || mw_objcache_wants_refill(&thread_cache) ||
	    mw_user_wants_refill())
		mw_kick_raise(MW_KICK_REFILL);
}

static struct mw_process *track_add_process(struct task_struct *task, u32 reason)
{
	struct mw_process *p = mw_objcache_get(&process_cache);

	if (!p)
		return track_note_missed();
	p->signal = task->signal;
	p->tgid = task->tgid;
	p->nr_threads = 0;
	atomic64_set(&p->unmeasured_ns, 0);
	mw_owner_birth(p, task->group_leader, reason);
	mw_process_insert(p);
	return p;
}

static struct mw_process *track_add_thread(struct task_struct *task, u32 reason)
{
	struct mw_thread *t = mw_objcache_get(&thread_cache);
	struct mw_process *p;

	if (!t)
		return track_note_missed();
	p = mw_process_find(task) ?: track_add_process(task, reason);
	if (!p) {
		mw_objcache_put(&thread_cache, t);
		return NULL;
	}
	t->task = task;
	t->process = p;
	p->nr_threads++;
	track_insert_thread(t);
	return p;
}

/*
 * Track @task unless it is tracked already. TASK_DEAD is read under mw_lock. If
 * it is not set, the last switch is still to come and will find the thread. If
 * it is set, the last switch has found no thread or will find none, so the
 * thread must not be inserted.
 *
 * Return: the process of @task if @task was inserted, else NULL
 */
static struct mw_process *track_task(struct task_struct *task, u32 reason)
{
	struct mw_process *p;

	lockdep_assert_held(&mw_lock);
	if (!tracking || mw_task_is_dead(task) || track_find_thread(task))
		return NULL;
	p = track_add_thread(task, reason);
	track_kick_refill();
	return p;
}

/* ---------------------------------------------------------------- hooks */

/* Called before the child can run, so that it never runs without its RMID. */
void mw_track_fork(struct task_struct *child)
{
	unsigned long flags;

	if (child->flags & PF_KTHREAD)
		return;
	rcu_read_lock();
	raw_spin_lock_irqsave(&mw_lock, flags);
	track_task(child, MEMWATCH_REASON_FORK);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	rcu_read_unlock();
}

/*
 * @task is current, and it is the leader, because de_thread() has run. A kernel
 * thread that executes a user program is seen here for the first time.
 */
void mw_track_exec(struct task_struct *task)
{
	struct mw_process *p;
	unsigned long flags;

	rcu_read_lock();
	raw_spin_lock_irqsave(&mw_lock, flags);
	if (!track_task(task, MEMWATCH_REASON_FORK)) {
		p = tracking ? mw_process_find(task) : NULL;
		if (p && mw_owner_renew(p, task, NULL, MEMWATCH_REASON_EXEC))
			mw_owner_exclude(p);
	}
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	rcu_read_unlock();
}

/*
 * Called before the name changes. The name of a process is that of its leader.
 * The rename within execve() is skipped, because mw_track_exec() follows and
 * reports it.
 */
void mw_track_rename(struct task_struct *task, const char *comm)
{
	struct mw_process *p;
	unsigned long flags;

	if (!thread_group_leader(task) || (task == current && mw_task_in_exec(task)))
		return;
	rcu_read_lock();
	raw_spin_lock_irqsave(&mw_lock, flags);
	p = tracking ? mw_process_find(task) : NULL;
	if (p && mw_owner_renew(p, task, comm, MEMWATCH_REASON_COMM))
		mw_owner_exclude(p);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	rcu_read_unlock();
}

/*
 * Called by the switch hook when a worker of MW_PF_WORKER is about to run. It
 * belongs to the process that created it, but its creation fires no
 * sched_process_fork. If that process is not in the table, it is not added here:
 * the worker, and task->group_leader with it, may have been reaped already.
 */
void mw_track_adopt(struct task_struct *task)
{
	if (likely(track_find_thread(task)))
		return;
	raw_spin_lock(&mw_lock);
	if (mw_process_find(task))
		track_task(task, MEMWATCH_REASON_FORK);
	raw_spin_unlock(&mw_lock);
}

/* Called by the switch hook when @task has left its CPU for the last time. */
void mw_track_exit(const struct task_struct *task)
{
	struct mw_process *p;
	struct mw_thread *t;

	if (task->flags & PF_KTHREAD)
		return;
	raw_spin_lock(&mw_lock);
	t = track_find_thread(task);
	if (t) {
		p = t->process;
		track_remove_thread(t);
		mw_objcache_free_later(&thread_cache, t);
		if (!--p->nr_threads) {
			mw_process_remove(p);
			mw_owner_death(p);
			mw_objcache_free_later(&process_cache, p);
		}
		track_kick_refill();
	}
	raw_spin_unlock(&mw_lock);
}

/* ----------------------------------------------------------------- scan */

/* Threads that the first walk visits in one RCU read-side section. */
#define SCAN_STRIDE 512

/* Leave the RCU read-side section for a moment. False if one of the two has ended meanwhile. */
static bool track_pause_walk(struct task_struct *leader, struct task_struct *task)
{
	bool alive;

	get_task_struct(leader);
	get_task_struct(task);
	rcu_read_unlock();
	mw_fail_delay("a walk of all threads");
	cond_resched();
	rcu_read_lock();
	/* Another thread may have taken the place of the leader in the list, see de_thread(). */
	alive = pid_alive(leader) && thread_group_leader(leader) && pid_alive(task);
	put_task_struct(task);
	put_task_struct(leader);
	return alive;
}

/*
 * Call @visit for all threads but kernel threads, and set @count to how often it
 * was true. Returns false if the walk could not go on after a pause.
 */
static bool track_walk_threads(bool (*visit)(struct task_struct *task), unsigned int stride,
			       unsigned int *count)
{
	struct task_struct *leader, *task;
	unsigned int seen = 0;
	bool done = true;

	*count = 0;
	rcu_read_lock();
	for_each_process_thread (leader, task) {
		if (!(task->flags & PF_KTHREAD))
			*count += visit(task);
		if (++seen % stride == 0 && !track_pause_walk(leader, task)) {
			done = false;
			goto out;
		}
	}
out:
	rcu_read_unlock();
	return done;
}

/*
 * Visit all threads, however fast threads come and go: a walk that could not go on
 * starts again and pauses half as often. Returns the largest count of all walks.
 */
static unsigned int track_visit_threads(bool (*visit)(struct task_struct *task))
{
	unsigned int stride = SCAN_STRIDE, most = 0, count;
	bool done;

	do {
		done = track_walk_threads(visit, stride, &count);
		most = max(most, count);
		stride *= 2;
	} while (!done);
	return most;
}

static bool track_count_thread(struct task_struct *task)
{
	return true;
}

static bool track_scan_thread(struct task_struct *task)
{
	unsigned long flags;
	bool found;

	raw_spin_lock_irqsave(&mw_lock, flags);
	found = track_task(task, MEMWATCH_REASON_SCAN);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	return found;
}

static bool track_clear_missed(void)
{
	unsigned long flags;
	bool was;

	raw_spin_lock_irqsave(&mw_lock, flags);
	was = missed;
	missed = false;
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	return was;
}

/* Have enough free objects for @nr threads, some of which have one already. */
static int track_refill_cache(struct mw_objcache *cache, unsigned int nr)
{
	unsigned int known = READ_ONCE(cache->nr) - READ_ONCE(cache->nr_free);

	return mw_objcache_refill(cache, cache->low + (nr > known ? nr - known : 0));
}

/*
 * Find the threads that existed before the hooks were attached. Threads that are
 * created during the scan are reported by the hooks, so a second pass finds only
 * those that the first one overlooked because the list changed while it was walked.
 */
int mw_track_scan(void)
{
	unsigned int nr, pass;
	int err = 0;

	for (pass = 0; pass < 8 && !err; pass++) {
		track_clear_missed();
		nr = track_visit_threads(track_count_thread);
		err = track_refill_cache(&thread_cache, nr)
			      ?: track_refill_cache(&process_cache, nr);
		if (!track_visit_threads(track_scan_thread) && pass && !READ_ONCE(missed))
			break;
	}
	mw_objcache_recycle(&thread_cache, NULL);
	mw_objcache_recycle(&process_cache, NULL);
	return err;
}

/*
 * Update name, user and cgroup of the processes of one bucket, and apply the
 * filters.
 *
 * Return: false if @batch is full and the bucket must be visited again
 */
bool mw_track_review(u32 bucket, struct mw_retire *batch)
{
	struct task_struct *leader;
	struct mw_process *p;
	unsigned long flags;
	bool done = true;

	if (!READ_ONCE(mw_processes.bucket[bucket]))
		return true;
	rcu_read_lock();
	raw_spin_lock_irqsave(&mw_lock, flags);
	for (p = tracking ? mw_processes.bucket[bucket] : NULL; p && done; p = p->next) {
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

/*
 * Take the RMIDs of processes that filters exclude since they renamed themselves or
 * executed another program, unless they have changed back. Return: false if @batch is
 * full and there may be more
 */
bool mw_track_expel(struct mw_retire *batch)
{
	u32 left = MW_RETIRE_BATCH - batch->nr;
	struct task_struct *leader;
	struct mw_process *p = NULL;
	unsigned long flags;
	const char *comm;

	rcu_read_lock();
	raw_spin_lock_irqsave(&mw_lock, flags);
	while (left-- && (p = mw_owner_next_excluded())) {
		leader = mw_process_leader(p);
		/* The name in the task changes after the hook that has recorded the new one. */
		comm = mw_owners[mw_owner_rmid(p->owner)].comm;
		if (!leader || mw_owner_renew(p, leader, comm, 0))
			mw_owner_retire(p, batch);
	}
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	rcu_read_unlock();
	return !p;
}

/* The work behind MW_KICK_REFILL. May sleep. */
void mw_track_refill(void)
{
	void *dead_processes, *dead_threads;

	mw_objcache_refill(&process_cache, 2 * process_cache.low);
	mw_objcache_refill(&thread_cache, 2 * thread_cache.low);
	mw_user_refill();
	if (READ_ONCE(missed))
		mw_track_scan();

	dead_processes = mw_objcache_take_freed(&process_cache);
	dead_threads = mw_objcache_take_freed(&thread_cache);
	if (dead_processes || dead_threads) {
		synchronize_rcu();
		mw_objcache_recycle(&process_cache, dead_processes);
		mw_objcache_recycle(&thread_cache, dead_threads);
	}
}

/* ----------------------------------------------------------- start, stop */

static int track_init_caches(void)
{
	int err;

	err = mw_fail(MW_FAIL_CACHE_PROCESS)
		      ? -ENOMEM
		      : mw_objcache_init(&process_cache, "memwatch_process",
					 sizeof(struct mw_process),
					 offsetof(struct mw_process, waiters), CACHE_LOW);
	if (err)
		return err;
	err = mw_fail(MW_FAIL_CACHE_THREAD)
		      ? -ENOMEM
		      : mw_objcache_init(&thread_cache, "memwatch_thread", sizeof(struct mw_thread),
					 offsetof(struct mw_thread, process), CACHE_LOW);
	if (err)
		goto err_process;
	err = mw_user_arm();
	if (err)
		goto err_thread;
	return 0;

err_thread:
	mw_objcache_uninit(&thread_cache);
err_process:
	mw_objcache_uninit(&process_cache);
	return err;
}

int mw_track_arm(void)
{
	int err;

	err = mw_process_create_table();
	thread_shift = mw_processes.shift;
	threads = kvcalloc(mw_process_buckets(), sizeof(*threads), GFP_KERNEL);
	if (!err)
		err = !threads || mw_fail(MW_FAIL_TABLES) ? -ENOMEM : track_init_caches();
	if (err) {
		mw_process_free_table();
		kvfree(threads);
		threads = NULL;
	}
	return err;
}

void mw_track_enable(bool on)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&mw_lock, flags);
	tracking = on;
	raw_spin_unlock_irqrestore(&mw_lock, flags);
}

static void track_forget_threads(u32 bucket)
{
	struct mw_thread *t;
	unsigned long flags;

	raw_spin_lock_irqsave(&mw_lock, flags);
	while ((t = threads[bucket])) {
		threads[bucket] = t->next;
		mw_objcache_put(&thread_cache, t);
	}
	raw_spin_unlock_irqrestore(&mw_lock, flags);
}

static void track_forget_processes(u32 bucket)
{
	struct mw_process *p;
	unsigned long flags;

	raw_spin_lock_irqsave(&mw_lock, flags);
	while ((p = mw_processes.bucket[bucket])) {
		mw_processes.bucket[bucket] = p->next;
		mw_owner_death(p);
		mw_objcache_put(&process_cache, p);
	}
	raw_spin_unlock_irqrestore(&mw_lock, flags);
}

/* All hooks are gone and a grace period has passed, so nobody else uses the tables. */
void mw_track_disarm(void)
{
	u32 i;

	for (i = 0; i < mw_process_buckets(); i++) {
		track_forget_threads(i);
		track_forget_processes(i);
	}
	mw_user_disarm();
	mw_objcache_uninit(&thread_cache);
	mw_objcache_uninit(&process_cache);
	kvfree(threads);
	threads = NULL;
	mw_process_free_table();
}

size_t mw_track_memory(void)
{
	unsigned long flags;
	size_t bytes = 0;

	raw_spin_lock_irqsave(&mw_lock, flags);
	if (mw_processes.bucket)
		bytes = 2 * sizeof(void *) * mw_process_buckets() + mw_user_memory() +
			process_cache.nr * sizeof(struct mw_process) +
			thread_cache.nr * sizeof(struct mw_thread);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	return bytes;
}

u64 mw_track_missed(void)
{
	return READ_ONCE(untracked);
}
