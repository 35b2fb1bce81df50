/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the module knows about a CPU.
 */
#ifndef _MW_CPU_H
#define _MW_CPU_H

#include <linux/bitmap.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/percpu.h>

#include "rdt-plan.h"

/* Class N counts tick delays of [2^N, 2^(N+1)) ns; class 0 also 0. */
#define MW_JITTER_CLASSES 32

/**
 * enum mw_tick_state - what the timer of a CPU does
 * @MW_TICK_OFF: no session, or the CPU is offline
 * @MW_TICK_ON: it ticks
 * @MW_TICK_IDLE: the CPU is idle and the tick stopped, until the next switch
 * @MW_TICK_EXCLUDED: the cpumask excludes the CPU
 */
enum mw_tick_state {
	MW_TICK_OFF,
	MW_TICK_ON,
	MW_TICK_IDLE,
	MW_TICK_EXCLUDED,
};

struct mw_rdt_domain;

/**
 * struct mw_cpu - one CPU
 * @owner: what it is charged to now: generation << 32 | RMID
 * @live: all ones while a session runs here, else 0: masks the owner, so that
 *	the hook needs no branch for it
 * @closid: CLOSID in the upper half, as PQR_ASSOC holds it
 * @switches: calls of the hook
 * @switch_sampled: those that were timed
 * @switch_cycles: how long these took
 * @pqr_writes: writes to PQR_ASSOC
 * @ran: RMIDs that ran here since @ran_since
 * @ran_since: when the domain was told last
 * @foreign_writes: times somebody else had written PQR_ASSOC
 * @notice_ns: when it was announced last
 * @domain: of its L3 cache; NULL while RDT is not in use
 * @rdt_ops: reads and writes of RDT's counter registers in ticks
 * @rdt_ops_max: the most in one tick
 * @rdt_reads: RMIDs read
 * @rdt_waits: RMIDs that ran and did not fit into a tick
 * @timer: the tick
 * @wake: starts @timer again after idle
 * @state: &enum mw_tick_state
 * @overruns: periods skipped since the last tick
 * @last_tick: when it was
 * @ticks: ticks
 * @missed: periods without a tick
 * @tick_cycles: how long all ticks took
 * @jitter_max: the longest delay of a tick
 * @jitter: ticks by delay
 *
 * Written by this CPU only, with interrupts off; read from anywhere.
 */
struct mw_cpu {
	u64 owner;
	u64 live;
	u64 closid;
	u64 switches;
	u64 switch_sampled;
	u64 switch_cycles;
	u64 pqr_writes;
	DECLARE_BITMAP(ran, MW_RDT_RMIDS);
	u64 ran_since;
	u64 foreign_writes;
	u64 notice_ns;

	struct mw_rdt_domain *domain;
	u64 rdt_ops;
	u64 rdt_ops_max;
	u64 rdt_reads;
	u64 rdt_waits;

	struct hrtimer timer;
	struct irq_work wake;
	u32 state;
	u32 overruns;
	u64 last_tick;
	u64 ticks;
	u64 missed;
	u64 tick_cycles;
	u64 jitter_max;
	u32 jitter[MW_JITTER_CLASSES];
};

DECLARE_PER_CPU(struct mw_cpu, mw_cpu);

/* On the CPU in question, interrupts off. */
void mw_cpu_report_state(u32 state, u64 since);
void mw_cpu_resume_tick(struct mw_cpu *cpu);

#endif /* _MW_CPU_H */
