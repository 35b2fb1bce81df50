// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Attaching to the tracepoints of the kernel. They are not exported by name, so
 * they are looked up. The compiler checks the types of the probes against the
 * headers.
 */
#include <linux/binfmts.h>
#include <linux/delay.h>
#include <linux/ratelimit.h>
#include <linux/tracepoint.h>
#include <trace/events/sched.h>
#include <trace/events/task.h>

#include "compat/sched.h"
#include "fail.h"
#include "hooks.h"
#include "switch.h"
#include "track.h"

static void hooks_on_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	mw_track_fork(child);
}

static void hooks_on_exec(void *data, struct task_struct *task, pid_t old_pid,
			  struct linux_binprm *bprm)
{
	mw_track_exec(task);
}

static void hooks_on_rename(void *data, struct task_struct *task, const char *comm)
{
	mw_track_rename(task, comm);
}

/**
 * struct hook - a probe on a tracepoint
 * @name: name of the tracepoint
 * @probe: function to be called
 * @step: step of fault injection that makes the registration fail
 * @tracepoint: the tracepoint, NULL until it is found
 * @registered: whether it is registered; the kernel warns if it is unregistered twice
 */
struct hook {
	const char *name;
	void *probe;
	enum mw_fail_step step;
	struct tracepoint *tracepoint;
	bool registered;
};

/* The switch hook is first: a fork must not be seen without the exit that follows it. */
static struct hook hooks[] = {
	{ "sched_switch", mw_switch_hook, MW_FAIL_HOOK_SWITCH },
	{ "sched_process_fork", hooks_on_fork, MW_FAIL_HOOK_FORK },
	{ "sched_process_exec", hooks_on_exec, MW_FAIL_HOOK_EXEC },
	{ "task_rename", hooks_on_rename, MW_FAIL_HOOK_RENAME },
};

/* Fails to compile if a probe does not fit its tracepoint. */
static void __maybe_unused hooks_check_types(void)
{
	check_trace_callback_type_sched_switch(mw_switch_hook);
	check_trace_callback_type_sched_process_fork(hooks_on_fork);
	check_trace_callback_type_sched_process_exec(hooks_on_exec);
	check_trace_callback_type_task_rename(hooks_on_rename);
}

static void hooks_match_name(struct tracepoint *tracepoint, void *unused)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(hooks); i++)
		if (!strcmp(tracepoint->name, hooks[i].name))
			hooks[i].tracepoint = tracepoint;
}

static int hooks_find_tracepoints(void)
{
	unsigned int i;

	for_each_kernel_tracepoint (hooks_match_name, NULL)
		;
	if (mw_fail(MW_FAIL_HOOK_FIND))
		return -ENODEV;
	for (i = 0; i < ARRAY_SIZE(hooks); i++)
		if (!hooks[i].tracepoint) {
			pr_err_ratelimited("this kernel has no tracepoint %s\n", hooks[i].name);
			return -ENODEV;
		}
	return 0;
}

int mw_hooks_register(void)
{
	unsigned int i;
	int err;

	err = hooks_find_tracepoints();
	for (i = 0; i < ARRAY_SIZE(hooks) && !err; i++) {
		err = mw_fail(hooks[i].step) ? -ENOMEM
					     : tracepoint_probe_register(hooks[i].tracepoint,
									 hooks[i].probe, NULL);
		hooks[i].registered = !err;
	}
	if (err)
		mw_hooks_unregister();
	return err;
}

/*
 * Up to 5.11 the kernel allocates memory to remove a probe (befe6d946551 ("tracepoint:
 * Do not fail unregistering a probe due to memory failure")). A probe that stays would
 * be called after the module was unloaded.
 */
static void hooks_unregister_one(const struct hook *hook)
{
	while (mw_fail(MW_FAIL_UNHOOK) ||
	       tracepoint_probe_unregister(hook->tracepoint, hook->probe, NULL) == -ENOMEM)
		msleep(20);
}

/* No probe runs any more when this returns. */
void mw_hooks_unregister(void)
{
	unsigned int i;

	for (i = ARRAY_SIZE(hooks); i-- > 0;) {
		if (hooks[i].registered)
			hooks_unregister_one(&hooks[i]);
		hooks[i].registered = false;
	}
	tracepoint_synchronize_unregister();
}
