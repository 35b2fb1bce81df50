/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Differences between kernels in linux/sched.h and trace/events/sched.h.
 */
#ifndef _MW_COMPAT_SCHED_H
#define _MW_COMPAT_SCHED_H

#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <compat/config.h>

/*
 * The parameters of a probe on sched_switch. The module does not use
 * prev_state: it is absent before 5.18 and could be out of date before 6.16
 * (8feb053d5319 ("sched: Fix trace_sched_switch(.prev_state)")).
 */
#if defined(MW_HAVE_SCHED_SWITCH_PREV_STATE_LAST)
#define MW_SCHED_SWITCH_PARAMETERS(prev, next)                                                     \
	void *data, bool preempt, struct task_struct *prev, struct task_struct *next,              \
		unsigned int prev_state
#elif defined(MW_HAVE_SCHED_SWITCH_PREV_STATE_FIRST)
#define MW_SCHED_SWITCH_PARAMETERS(prev, next)                                                     \
	void *data, bool preempt, unsigned int prev_state, struct task_struct *prev,               \
		struct task_struct *next
#else
#define MW_SCHED_SWITCH_PARAMETERS(prev, next)                                                     \
	void *data, bool preempt, struct task_struct *prev, struct task_struct *next
#endif

/* True from do_task_dead() on: the next switch of this task is its last. */
static __always_inline bool mw_task_is_dead(const struct task_struct *task)
{
#ifdef MW_HAVE_TASK_DUNDER_STATE
	return READ_ONCE(task->__state) == TASK_DEAD;
#else
	return READ_ONCE(task->state) == TASK_DEAD;
#endif
}

/*
 * Threads of a process for which the kernel fires no sched_process_fork: I/O workers
 * of io_uring, and since 6.4 the workers of vhost and KVM.
 */
#ifdef PF_USER_WORKER
#define MW_PF_WORKER (PF_IO_WORKER | PF_USER_WORKER)
#else
#define MW_PF_WORKER PF_IO_WORKER
#endif

/* Is @task on a CPU? False until a switch to it has got beyond the switch hook. */
static inline bool mw_task_on_cpu(const struct task_struct *task)
{
#ifdef CONFIG_SMP
	return READ_ONCE(task->on_cpu);
#else
	return true;
#endif
}

/*
 * Is @task, which is current, inside execve()? On kernels without the flag,
 * look at the lock that execve() holds for writing while it renames the task. A
 * reader of that lock makes the answer wrong; then one rename record is
 * missing.
 */
static inline bool mw_task_in_exec(struct task_struct *task)
{
#ifdef MW_HAVE_TASK_IN_EXECVE
	return task->in_execve;
#else
	return rwsem_is_locked(&task->signal->exec_update_lock);
#endif
}

#endif /* _MW_COMPAT_SCHED_H */
