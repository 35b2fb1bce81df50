/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * f9ce1f1cda8b ("Add in_execve flag into task_struct."), 2.6.30. It has been
 * proposed to remove the flag. Delete this probe when no supported kernel has
 * the flag, or never.
 */
#include <linux/sched.h>

bool mw_probe(struct task_struct *task);
bool mw_probe(struct task_struct *task)
{
	return task->in_execve;
}
