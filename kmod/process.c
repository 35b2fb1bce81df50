// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The table of processes, see process.h.
 */
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched/signal.h>

#include "lock.h"
#include "process.h"

DEFINE_STATIC_KEY_FALSE(mw_last_run_key);

struct mw_process **mw_processes;

int mw_process_create_table(void)
{
	mw_processes = kvcalloc(1 << MW_PROCESS_BITS, sizeof(*mw_processes), GFP_KERNEL);
	return mw_processes ? 0 : -ENOMEM;
}

void mw_process_free_table(void)
{
	kvfree(mw_processes);
	mw_processes = NULL;
}

/* smp_store_release() pairs with READ_ONCE() of dependent loads in readers. */
void mw_process_insert(struct mw_process *p)
{
	struct mw_process **bucket = &mw_processes[mw_process_hash(p->signal)];

	lockdep_assert_held(&mw_lock);
	p->next = *bucket;
	smp_store_release(bucket, p);
}

void mw_process_remove(struct mw_process *p)
{
	struct mw_process **link = &mw_processes[mw_process_hash(p->signal)];

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
