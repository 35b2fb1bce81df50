/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * 9c2136be0878 ("sched/tracing: Append prev_state to tp args instead"), 5.18.
 * Delete when the oldest supported kernel is 5.18 or newer.
 */
#include <linux/module.h>
#include <trace/events/sched.h>

static void on_switch(void *data, bool preempt, struct task_struct *prev, struct task_struct *next,
		      unsigned int prev_state)
{
}

void mw_probe(void);
void mw_probe(void)
{
	check_trace_callback_type_sched_switch(on_switch);
}
