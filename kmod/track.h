/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which processes exist, and which of their threads are still to make their
 * last switch. Who owns which RMID is the business of owner.h.
 */
#ifndef _MW_TRACK_H
#define _MW_TRACK_H

#include <linux/hash.h>
#include <linux/list.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

/**
 * enum mw_process_state - why a process has an RMID or has none
 * @MW_PROCESS_MEASURED: it owns one
 * @MW_PROCESS_WAITING: there was none left; it is on the list of waiters
 * @MW_PROCESS_FILTERED: a filter excludes it
 * @MW_PROCESS_RETIRING: its RMID was taken away, but CPUs may still run with it
 * @MW_PROCESS_STATES: how many states there are
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
 * @next: in its bucket
 * @signal: the key. Shared by all threads, and the same for the whole life of
 *	each task_struct: neither exit nor execve() by a non-leader changes it,
 *	and it is not reused before the last of them is gone.
 * @owner: generation << 32 | RMID, 0 if it has none. Read without a lock.
 * @waiters: in the list of waiters; links free and buried objects
 * @nr_threads: known threads that have not made their last switch
 * @tgid: thread group id in the initial pid namespace
 * @last_run: jiffies when a thread of it last came to a CPU, or was seen there;
 *	kept only while mw_last_run_key is on
 * @retiring: the RMID on its way out in MW_PROCESS_RETIRING, else 0
 * @state: &enum mw_process_state
 *
 * mw_lock guards all writes. Readers of @next, @signal and @owner run with
 * preemption off; a process is reused only after a grace period.
 */
struct mw_process {
	struct mw_process *next;
	const void *signal;
	u64 owner;
	struct list_head waiters;
	u32 nr_threads;
	u32 tgid;
	u32 last_run;
	u16 retiring;
	u8 state;
};

#define MW_PROCESS_BITS 13

/*
 * The one lock for everything that changes when processes come and go: both
 * tables, the pool, the owners, the waiters, the stashes, the filters. Taken
 * inside the run queue lock, so no wake-up, no printk, no allocation under it.
 */
extern raw_spinlock_t mw_lock;

/* MW_PROCESS_BITS buckets. Only probes and those who hold off disarming look. */
extern struct mw_process **mw_processes;

static __always_inline u32 mw_process_hash(const void *signal)
{
	return ((unsigned long)signal * GOLDEN_RATIO_64) >> (64 - MW_PROCESS_BITS);
}

/*
 * The process of @task or NULL. Preemption is off or mw_lock held.
 * rcu_dereference() without its checks: interrupts are off in the hook, which
 * is a read-side section, but lockdep is not to be asked in there.
 */
static __always_inline struct mw_process *mw_process_find(const struct task_struct *task)
{
	const void *signal = task->signal;
	struct mw_process *p = READ_ONCE(mw_processes[mw_process_hash(signal)]);

	while (p && p->signal != signal)
		p = READ_ONCE(p->next);
	return p;
}

struct mw_retire;

int mw_process_arm(void);
void mw_process_disarm(void);
void mw_process_track(bool on);
int mw_process_scan(void);
bool mw_process_review(u32 bucket, struct mw_retire *batch);
void mw_process_upkeep(void);
size_t mw_process_memory(void);

void mw_process_fork(struct task_struct *child);
void mw_process_exec(struct task_struct *task);
void mw_process_rename(struct task_struct *task, const char *comm);
void mw_process_adopt(struct task_struct *task);
void mw_process_thread_gone(const struct task_struct *task);

struct task_struct *mw_process_leader(const struct mw_process *p);
u64 mw_process_untracked(void);

#endif /* _MW_TRACK_H */
