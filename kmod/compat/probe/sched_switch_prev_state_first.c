/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fa2c3254d7cf ("sched/tracing: Don't re-read p->state when emitting
 * sched_switch event"), 5.18-rc1 and some stable kernels; the order was
 * changed again before 5.18. Delete when the oldest supported kernel is 5.18
 * or newer.
 */
#include <linux/module.h>
#include <trace/events/sched.h>

static void on_switch(void *data, bool preempt, unsigned int prev_state, struct task_struct *prev,
		      struct task_struct *next)
{
}

void mw_probe(void);
void mw_probe(void)
{
	check_trace_callback_type_sched_switch(on_switch);
}
