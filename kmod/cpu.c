// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The state of each CPU, and the record that reports a change of its tick state.
 */
#include <linux/memwatch.h>
#include <linux/smp.h>

#include "clock.h"
#include "cpu.h"
#include "trace.h"

DEFINE_PER_CPU(struct mw_cpu, mw_cpu);

/**
 * mw_cpu_report_state - send a CPU_STATE record about this CPU
 * @state: &enum memwatch_cpu_state
 * @since: the time that the state calls for
 *
 * Interrupts are off.
 */
void mw_cpu_report_state(u32 state, u64 since)
{
	struct memwatch_record_cpu rec = {
		.h = { .time_ns = mw_now(),
		       .type = MEMWATCH_RECORD_CPU_STATE,
		       .size = sizeof(rec),
		       .cpu = smp_processor_id() },
		.state = state,
		.since_ns = since,
	};

	trace_memwatch_cpu_state(&rec);
}

/* A tick, or reading between two ticks, begins. */
struct mw_span mw_cpu_begin_span(struct mw_cpu *cpu)
{
	cpu->now_ns = mw_now();
	return (struct mw_span){ .ns = cpu->now_ns, .cycles = get_cycles() };
}

/* It ends. Interrupts were off. */
void mw_cpu_end_span(struct mw_cpu *cpu, const struct mw_span *begin)
{
	u64 ns = mw_now_since(begin->ns);

	cpu->tick_ns += ns;
	cpu->tick_cycles += get_cycles() - begin->cycles;
	cpu->irqs_off_max = max(cpu->irqs_off_max, ns);
}

/**
 * mw_cpu_resume_tick - start the tick of an idle CPU again
 * @cpu: this CPU, in the state MW_TICK_IDLE
 *
 * Called by the switch hook when an idle CPU gets work. The record is sent at
 * once, so that it precedes the records of the task that runs now. An irq_work
 * starts the timer, because a timer cannot be started under the run queue lock.
 * Only RMID 0 ran meanwhile, which has one owner for ever.
 */
void mw_cpu_resume_tick(struct mw_cpu *cpu)
{
	cpu->state = MW_TICK_ON;
	cpu->ran_since = mw_now();
	mw_cpu_report_state(MEMWATCH_CPU_BUSY, cpu->last_tick);
	irq_work_queue(&cpu->wake);
}
