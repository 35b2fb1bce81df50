/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * This probe is not about a commit. It uses everything that the module needs
 * and that is older than the oldest kernel of the matrix. If it does not
 * compile, the build stops and shows why. Never to be deleted.
 */
#include <linux/module.h>
#include <linux/hrtimer.h>
#include <linux/tracepoint.h>
#include <linux/proc_fs.h>
#include <linux/uaccess.h>
#include <linux/memwatch.h>
#include <asm/msr.h>
#include <trace/events/sched.h>
#include <trace/events/task.h>

#ifndef CONFIG_X86_64
#error "memwatch needs x86-64"
#endif
#ifndef CONFIG_TRACEPOINTS
#error "memwatch needs a kernel with CONFIG_TRACEPOINTS"
#endif
#ifndef CONFIG_SMP
#error "memwatch needs a kernel with CONFIG_SMP"
#endif

static void on_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
}

static void on_exec(void *data, struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)
{
}

static void on_rename(void *data, struct task_struct *task, const char *comm)
{
}

int mw_sanity(struct memwatch_start *to, const void __user *from);
int mw_sanity(struct memwatch_start *to, const void __user *from)
{
	check_trace_callback_type_sched_process_fork(on_fork);
	check_trace_callback_type_sched_process_exec(on_exec);
	check_trace_callback_type_task_rename(on_rename);
	return copy_struct_from_user(to, sizeof(*to), from, sizeof(*to)) +
	       HRTIMER_MODE_ABS_PINNED_HARD;
}
