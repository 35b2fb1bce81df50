// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The table of processes, see process.h.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched/signal.h>

#include "lock.h"
#include "process.h"

DEFINE_STATIC_KEY_FALSE(mw_last_run_key);

struct mw_process_table mw_processes;

/* Bits of the number of a bucket. */
#define BITS_MIN 12
#define BITS_MAX 20

/*
 * The size of the tables of processes and threads. The kernel lets thread stacks
 * fill an eighth of the memory; with as many threads as that, a bucket holds four.
 * Memory does not grow while a session runs, but the number of threads does.
 */
u32 mw_process_table_bits(void)
{
	u64 threads = (u64)totalram_pages() * PAGE_SIZE / (8 * THREAD_SIZE);

	return clamp_t(u32, ilog2(threads / 4 | 1) + 1, BITS_MIN, BITS_MAX);
}

int mw_process_create_table(void)
{
	u32 bits = mw_process_table_bits();

	mw_processes.shift = 64 - bits;
	mw_processes.bucket = kvcalloc(1UL << bits, sizeof(*mw_processes.bucket), GFP_KERNEL);
	return mw_processes.bucket ? 0 : -ENOMEM;
}

void mw_process_free_table(void)
{
	kvfree(mw_processes.bucket);
	mw_processes.bucket = NULL;
}

/* smp_store_release() pairs with READ_ONCE() of dependent loads in readers. */
void mw_process_insert(struct mw_process *p)
{
	struct mw_process **bucket = &mw_processes.bucket[mw_process_hash(p->signal)];

	lockdep_assert_held(&mw_lock);
	p->next = *bucket;
	smp_store_release(bucket, p);
}

void mw_process_remove(struct mw_process *p)
{
	struct mw_process **link = &mw_processes.bucket[mw_process_hash(p->signal)];

	lockdep_assert_held(&mw_lock);
	while (*link != p)
		link = &(*link)->next;
	WRITE_ONCE(*link, p->next);
}

/**
 * mw_process_leader - the leader of a thread group
 * @p: the process
 *
 * The caller is in an RCU read-side section, and may use the task only there:
 * it may be released at any time.
 *
 * Return: the leader, NULL if it has been reaped
 */
struct task_struct *mw_process_leader(const struct mw_process *p)
{
	struct task_struct *leader = pid_task(find_pid_ns(p->tgid, &init_pid_ns), PIDTYPE_TGID);

	return leader && leader->signal == p->signal ? leader : NULL;
}

/* A tick that stands for @ns found @task running, while this CPU is charged to nobody. */
void mw_process_note_unmeasured(const struct task_struct *task, u64 ns)
{
	struct mw_process *p = mw_process_find(task);
	u8 state = p ? READ_ONCE(p->state) : MW_PROCESS_FILTERED;

	if (state == MW_PROCESS_WAITING || state == MW_PROCESS_RETIRING)
		atomic64_add(ns, &p->unmeasured_ns);
}
