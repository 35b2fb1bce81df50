// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The hot path: at each context switch find the owner of the next task, and
 * write PQR_ASSOC if it has changed. Interrupts are off and the run queue lock
 * is held. No lock is taken unless a thread makes its last switch.
 *
 * Everything unlikely is out of line, so that the common path is straight and
 * short; its length in instructions is a budget that is tested.
 */
#include <linux/smp.h>

#include "clock.h"
#include "owner.h"
#include "policy.h"
#include "track.h"
#include "rdt.h"
#include "switch.h"
#include "tick.h"
#include "trace.h"

DEFINE_PER_CPU(struct mw_cpu, mw_cpu);
DEFINE_STATIC_KEY_FALSE(mw_idle_stop_key);

/* One call in so many is timed. */
#define SAMPLE_MASK 63

static __always_inline u64 owner_of(struct task_struct *task)
{
	struct mw_process *p;

	if (unlikely(task->flags & (PF_KTHREAD | PF_IO_WORKER))) {
		if (task->flags & PF_KTHREAD)
			return 0;
		mw_process_adopt(task);
	}
	p = mw_process_find(task);
	if (unlikely(!p))
		return 0;
	if (static_branch_unlikely(&mw_last_run_key) && p->last_run != (u32)jiffies)
		WRITE_ONCE(p->last_run, (u32)jiffies);
	return READ_ONCE(p->owner);
}

/* PQR_ASSOC knows no generations: the same RMID need not be written again. */
static __always_inline void charge(struct mw_cpu *cpu, u64 owner)
{
	u64 before = cpu->owner;

	cpu->owner = owner;
	if (static_branch_unlikely(&mw_pqr_key) && (u32)owner != (u32)before)
		mw_rdt_write(cpu, (u32)owner);
}

static noinline void report(const struct mw_cpu *cpu, u64 before, u64 owner, u32 pid)
{
	if (cpu->live)
		trace_memwatch_switch(mw_now(), before, owner, pid);
}

/*
 * A dead prev is let go only after this CPU is charged to next: its RMID may be
 * free at once, and nobody may run with it then.
 */
static __always_inline void switch_over(struct mw_cpu *cpu, struct task_struct *prev,
					struct task_struct *next)
{
	u64 owner = owner_of(next) & cpu->live;
	u64 before = cpu->owner;

	if (static_branch_unlikely(&mw_idle_stop_key) && cpu->state == MW_TICK_IDLE &&
	    !is_idle_task(next))
		mw_tick_wake(cpu);
	if (static_branch_unlikely(&mw_last_run_key))
		WRITE_ONCE(mw_owners[mw_owner_rmid(before)].last_run, (u32)jiffies);
	if (owner != before)
		charge(cpu, owner);
	if (trace_memwatch_switch_enabled())
		report(cpu, before, owner, next->pid);
	if (unlikely(mw_task_is_dead(prev)))
		mw_process_thread_gone(prev);
}

static noinline void switch_over_timed(struct mw_cpu *cpu, struct task_struct *prev,
				       struct task_struct *next)
{
	cycles_t begin = get_cycles();

	switch_over(cpu, prev, next);
	cpu->switch_cycles += get_cycles() - begin;
	cpu->switch_sampled++;
}

void mw_switch_hook(MW_SCHED_SWITCH_PARAMETERS(prev, next))
{
	struct mw_cpu *cpu = this_cpu_ptr(&mw_cpu);

	if (likely(++cpu->switches & SAMPLE_MASK))
		switch_over(cpu, prev, next);
	else
		switch_over_timed(cpu, prev, next);
}

static void recharge(struct mw_cpu *cpu, u64 owner)
{
	u64 before = cpu->owner;

	if (owner == before)
		return;
	charge(cpu, owner);
	trace_memwatch_switch(mw_now(), before, owner, current->pid);
}

/*
 * The owner of the running task may have changed: promoted, revoked, filtered.
 * Interrupts are off, so no switch is under way on this CPU: current is what
 * the hook saw last, or will see next, with the same result.
 */
void mw_switch_refresh(struct mw_cpu *cpu)
{
	lockdep_assert_irqs_disabled();
	if (cpu->live)
		recharge(cpu, owner_of(current));
}

/* From now on this CPU is charged to what runs on it. */
void mw_switch_begin(struct mw_cpu *cpu)
{
	lockdep_assert_irqs_disabled();
	cpu->owner = 0;
	cpu->live = ~0ULL;
	mw_switch_refresh(cpu);
}

/* From now on this CPU is charged to nobody; PQR_ASSOC is as it was. */
void mw_switch_end(struct mw_cpu *cpu)
{
	lockdep_assert_irqs_disabled();
	recharge(cpu, 0);
	cpu->live = 0;
}

/* Likewise, but PQR_ASSOC is not ours to write any more. */
void mw_switch_abandon(struct mw_cpu *cpu)
{
	u64 before = cpu->owner;

	lockdep_assert_irqs_disabled();
	cpu->owner = 0;
	cpu->live = 0;
	if (before)
		trace_memwatch_switch(mw_now(), before, 0, current->pid);
}

static void refresh(void *unused)
{
	mw_switch_refresh(this_cpu_ptr(&mw_cpu));
}

/*
 * Afterwards no CPU runs with an owner that was replaced before the call: the
 * hook runs with interrupts off, so it is either over when the interrupt comes,
 * or it starts later and sees the new owner.
 */
void mw_switch_refresh_all(void)
{
	on_each_cpu(refresh, NULL, 1);
}
