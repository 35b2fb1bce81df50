/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * f9ce1f1cda8b ("Add in_execve flag into task_struct."), 2.6.30. Asked in case
 * it goes away, as was proposed more than once. Delete when it has gone and no
 * supported kernel has it, or never.
 */
#include <linux/sched.h>

bool mw_probe(struct task_struct *task);
bool mw_probe(struct task_struct *task)
{
	return task->in_execve;
}
