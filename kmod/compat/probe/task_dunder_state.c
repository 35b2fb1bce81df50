/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * 2f064a59a11f ("sched: Change task_struct::state"), 5.14: state became
 * __state. Delete when the oldest supported kernel is 5.14 or newer.
 */
#include <linux/sched.h>

unsigned int mw_probe(struct task_struct *task);
unsigned int mw_probe(struct task_struct *task)
{
	return READ_ONCE(task->__state);
}
