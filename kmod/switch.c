// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The hot path: at each context switch find the owner of the next task, and
 * write PQR_ASSOC if it has changed. Interrupts are off and the run queue lock
 * is held. A lock is taken only when a thread makes its last switch, when a process begins
 * to run that waits for an RMID or has no assignable counters, and for new workers.
 *
 * Unlikely cases are out of line, so that the common path is short. A test
 * compares its number of instructions with a budget.
 */
#include <linux/smp.h>

#include "clock.h"
#include "owner.h"
#include "pqr.h"
#include "process.h"
#include "rdt-domain.h"
#include "switch.h"
#include "trace.h"
#include "track.h"

DEFINE_STATIC_KEY_FALSE(mw_idle_stop_key);

/* One call of the hook in 64 is timed. */
#define SAMPLE_MASK 63

static __always_inline u64 switch_find_owner(struct task_struct *task)
{
	struct mw_process *p;

	if (unlikely(task->flags & (PF_KTHREAD | MW_PF_WORKER))) {
		if (task->flags & PF_KTHREAD)
			return 0;
		mw_track_adopt(task);
	}
	p = mw_process_find(task);
	if (unlikely(!p))
		return 0;
	if (static_branch_unlikely(&mw_last_run_key) && unlikely(p->last_run != jiffies))
		mw_owner_note_run(p);
	return READ_ONCE(p->owner);
}

/* PQR_ASSOC has no generations: the same RMID need not be written again. */
static __always_inline void switch_charge_cpu(struct mw_cpu *cpu, u64 owner)
{
	u64 before = cpu->owner;

	cpu->owner = owner;
	if (static_branch_unlikely(&mw_pqr_key) && (u32)owner != (u32)before) {
		mw_rdt_domain_run(cpu->domain, owner);
		mw_pqr_write(cpu, (u32)owner);
	}
}

static noinline void switch_report(const struct mw_cpu *cpu, u64 before, u64 owner, u32 pid)
{
	if (cpu->live)
		trace_memwatch_switch(mw_now(), before, owner, pid);
}

/*
 * The exit of @prev comes last, after the CPU is charged to @next: it may free
 * the RMID at once, and then no CPU may run with it.
 */
static __always_inline void switch_owner(struct mw_cpu *cpu, struct task_struct *prev,
					 struct task_struct *next)
{
	u64 owner = switch_find_owner(next) & cpu->live;
	u64 before = cpu->owner;

	if (static_branch_unlikely(&mw_idle_stop_key) && cpu->state == MW_TICK_IDLE &&
	    !is_idle_task(next))
		mw_cpu_resume_tick(cpu);
	if (owner != before)
		switch_charge_cpu(cpu, owner);
	if (trace_memwatch_switch_enabled())
		switch_report(cpu, before, owner, next->pid);
	if (unlikely(mw_task_is_dead(prev)))
		mw_track_exit(prev);
}

static noinline void switch_owner_timed(struct mw_cpu *cpu, struct task_struct *prev,
					struct task_struct *next)
{
	cycles_t begin = get_cycles();

	switch_owner(cpu, prev, next);
	cpu->switch_cycles += get_cycles() - begin;
	cpu->switch_sampled++;
}

void mw_switch_hook(MW_SCHED_SWITCH_PARAMETERS(prev, next))
{
	struct mw_cpu *cpu = this_cpu_ptr(&mw_cpu);

	if (likely(++cpu->switches & SAMPLE_MASK))
		switch_owner(cpu, prev, next);
	else
		switch_owner_timed(cpu, prev, next);
}

static void switch_recharge_cpu(struct mw_cpu *cpu, u64 owner)
{
	u64 before = cpu->owner;

	if (owner == before)
		return;
	switch_charge_cpu(cpu, owner);
	/* If this is a tick, its record must not be older. */
	cpu->now_ns = mw_now();
	trace_memwatch_switch(cpu->now_ns, before, owner, current->pid);
}

/*
 * The owner of the running task may have changed because it was promoted, lost
 * its RMID or was filtered out. Interrupts are off, so no switch is under way on
 * this CPU: current is what the hook saw last, or will see next with the same
 * result.
 */
void mw_switch_refresh(struct mw_cpu *cpu)
{
	lockdep_assert_irqs_disabled();
	if (cpu->live)
		switch_recharge_cpu(cpu, switch_find_owner(current));
}

/* A tick that stands for @ns. */
void mw_switch_tick(struct mw_cpu *cpu, u64 ns)
{
	mw_switch_refresh(cpu);
	if (cpu->live && !cpu->owner && !is_idle_task(current))
		mw_process_note_unmeasured(current, ns);
}

/* Begin to charge this CPU to what runs on it. */
void mw_switch_begin(struct mw_cpu *cpu)
{
	lockdep_assert_irqs_disabled();
	cpu->owner = 0;
	cpu->live = ~0ULL;
	mw_switch_refresh(cpu);
}

/* Charge this CPU to nobody from now on. PQR_ASSOC gets back its CLOSID and RMID 0. */
void mw_switch_end(struct mw_cpu *cpu)
{
	lockdep_assert_irqs_disabled();
	switch_recharge_cpu(cpu, 0);
	cpu->live = 0;
}

/* Like mw_switch_end(), but leave PQR_ASSOC alone, because another user has it now. */
void mw_switch_abandon(struct mw_cpu *cpu)
{
	u64 before = cpu->owner;

	lockdep_assert_irqs_disabled();
	cpu->owner = 0;
	cpu->live = 0;
	if (before)
		trace_memwatch_switch(mw_now(), before, 0, current->pid);
}
