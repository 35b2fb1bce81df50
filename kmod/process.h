/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Processes: what is known about each of them, the table that finds them, and
 * the rule that says which task is the leader. The hooks that insert and remove
 * processes are in track.c; owner.c decides which process has an RMID.
 */
#ifndef _MW_PROCESS_H
#define _MW_PROCESS_H

#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/sched.h>

/**
 * enum mw_process_state - why a process has an RMID or has none
 * @MW_PROCESS_MEASURED: it owns an RMID
 * @MW_PROCESS_WAITING: no RMID was free; it is on the list of waiting processes
 * @MW_PROCESS_FILTERED: a filter excludes it
 * @MW_PROCESS_RETIRING: its RMID was taken away, but CPUs may still run with it
 * @MW_PROCESS_STATES: number of states
 */
enum mw_process_state {
	MW_PROCESS_MEASURED,
	MW_PROCESS_WAITING,
	MW_PROCESS_FILTERED,
	MW_PROCESS_RETIRING,
	MW_PROCESS_STATES,
};

/**
 * struct mw_process - a thread group
 * @next: next process in the same bucket of the table
 * @signal: the key. All threads share their signal_struct, and each task_struct
 *	keeps it for life: neither exit nor execve() by a thread that is not the
 *	leader changes it, and it is not reused before the last of them is gone.
 * @owner: generation << 32 | RMID, 0 without an RMID. Read without a lock.
 * @last_run: jiffies when one of its threads was last switched to, or found
 *	running by a tick; maintained only while mw_last_run_key is on
 * @waiters: entry in the list of waiting processes, or of those that have an RMID
 *	although a filter excludes them; links free objects in the object cache
 * @queue: entry in the queue of its user, see user.h
 * @unmeasured_ns: for how long it ran without an RMID since it had one; added to by ticks
 * @user: the user for whom it counts
 * @nr_threads: known threads that have not made their last switch
 * @tgid: thread group id in the initial pid namespace
 * @retiring: in the state MW_PROCESS_RETIRING the RMID that was taken, else 0
 * @state: &enum mw_process_state
 *
 * mw_lock guards all writes but those of @last_run and @unmeasured_ns. Readers of
 * @next, @signal and @owner run with preemption off; a process is reused only after
 * a grace period.
 */
struct mw_process {
	struct mw_process *next;
	const void *signal;
	u64 owner;
	unsigned long last_run;
	struct list_head waiters;
	struct list_head queue;
	atomic64_t unmeasured_ns;
	struct mw_user *user;
	u32 nr_threads;
	u32 tgid;
	u16 retiring;
	u8 state;
};

/* A process that has not run for this long is idle: the policy may take its RMID. */
#define MW_PROCESS_IDLE_JIFFIES msecs_to_jiffies(100)

/* On while the policy needs mw_process.last_run. */
DECLARE_STATIC_KEY_FALSE(mw_last_run_key);

/**
 * struct mw_process_table - the table of processes
 * @bucket: the buckets, NULL while no session runs
 * @shift: selects the bits of a hash that are the number of the bucket
 *
 * Only hooks, and code that keeps the module from being disarmed, may use it.
 */
struct mw_process_table {
	struct mw_process **bucket;
	u32 shift;
};

extern struct mw_process_table mw_processes;

static __always_inline u32 mw_process_hash(const void *signal)
{
	return ((unsigned long)signal * GOLDEN_RATIO_64) >> mw_processes.shift;
}

static inline u32 mw_process_buckets(void)
{
	return 1U << (64 - mw_processes.shift);
}

/*
 * The process of @task or NULL. Preemption is off or mw_lock is held. This is
 * rcu_dereference() without its checks: the switch hook runs with interrupts
 * off, which is an RCU read-side section, but must not call into lockdep.
 */
static __always_inline struct mw_process *mw_process_find(const struct task_struct *task)
{
	const void *signal = task->signal;
	struct mw_process *p = READ_ONCE(mw_processes.bucket[mw_process_hash(signal)]);

	while (p && p->signal != signal)
		p = READ_ONCE(p->next);
	return p;
}

/* Is @p idle at @now, in jiffies? Meaningful only while mw_last_run_key is on. */
static inline bool mw_process_is_idle(const struct mw_process *p, unsigned long now)
{
	return (long)(now - p->last_run) >= (long)MW_PROCESS_IDLE_JIFFIES;
}

/* In the tick. */
void mw_process_note_unmeasured(const struct task_struct *task, u64 ns);

u32 mw_process_table_bits(void);
int mw_process_create_table(void);
void mw_process_free_table(void);

/* Caller holds mw_lock. */
void mw_process_insert(struct mw_process *p);
void mw_process_remove(struct mw_process *p);

struct task_struct *mw_process_leader(const struct mw_process *p);

#endif /* _MW_PROCESS_H */
