/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The state of a CPU: what it is charged to, its tick, and its statistics.
 */
#ifndef _MW_CPU_H
#define _MW_CPU_H

#include <linux/bitmap.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/percpu.h>
#include <linux/timex.h>

#include "cost.h"
#include "rdt-plan.h"

/* Class N counts tick delays from 2^N to 2^(N+1) - 1 ns; class 0 counts 0 as well. */
#define MW_JITTER_CLASSES 32

/**
 * enum mw_tick_state - state of the tick of a CPU
 * @MW_TICK_OFF: no session is started, or the CPU is offline
 * @MW_TICK_ON: the timer runs
 * @MW_TICK_IDLE: the CPU is idle and its timer stopped until it gets work
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
 * struct mw_span - when something began
 * @ns: by the clock of all records
 * @cycles: by the counter of cycles, which is read much faster
 */
struct mw_span {
	u64 ns;
	cycles_t cycles;
};

/**
 * struct mw_cpu - one CPU
 * @owner: what the CPU is charged to now: generation << 32 | RMID
 * @live: all ones while a session runs on this CPU, else 0. The hook masks the
 * 	owner with it, which saves a branch.
 * @pqr: what PQR_ASSOC held when it was last written or read
 * @switches: calls of the switch hook
 * @switch_sampled: calls that were timed
 * @switch_cycles: cycles that the timed calls took
 * @pqr_writes: writes to PQR_ASSOC
 * @ran: RMIDs that ran on this CPU since @ran_since
 * @ran_since: when @ran was last passed to the domain
 * @foreign_rmid: RMID that resctrl has written last since it was mounted, else 0
 * @foreign_writes: times that somebody else had written PQR_ASSOC
 * @notice_ns: when a foreign write was last reported
 * @now_ns: in a tick, or while counters are read: the present time, as of the last record. A
 * 	look at the clock takes as long as a reading of a counter.
 * @ticking: counters are read in a tick, the record of which follows
 * @domain: L3 domain of this CPU; NULL while RDT is not in use
 * @bout: continues to read RDT counters between two ticks
 * @rdt_cursor: where in the plan of the domain the next reading continues
 * @rdt_holder: where the search for RMIDs that hold cache continues
 * @rdt_first: this CPU was the first one of its domain to tick in its last slot
 * @rdt_left: RMIDs that this CPU may still read in this slot
 * @rdt_until_ns: end of this slot
 * @rdt_rest_ns: until then others of the domain read, where one CPU reads for all
 * @rdt_ops: reads and writes of RDT counter registers in ticks
 * @rdt_ops_max: the largest number of them in one go
 * @rdt_reads: RMIDs read
 * @rdt_waits: RMIDs that ran, but did not fit into the budget of a tick
 * @rdt_busy: times that another CPU was reading, where only one may
 * @rdt_cycles: cycles spent on RDT counters
 * @rdt_sync_cycles: of them, cycles spent to divide the RMIDs among the CPUs of the domain
 * @rdt_age_max: longest time from when an RMID may have begun to run until it was read
 * @timer: the timer of the tick
 * @wake: starts @timer again when an idle CPU gets work
 * @state: &enum mw_tick_state
 * @period_ns: the period of @timer
 * @overruns: periods skipped since the last tick
 * @last_tick: time of the last tick
 * @ticks: number of ticks
 * @missed: number of periods without a tick
 * @tick_cycles: cycles that ticks, and reading between them, took
 * @tick_ns: the same in ns
 * @cost: whether they took too much of it
 * @irqs_off_max: the longest time that one of them took
 * @jitter_max: largest delay of a tick
 * @jitter: histogram of the delays of ticks
 *
 * Written by this CPU only, with interrupts off; read from anywhere.
 */
struct mw_cpu {
	u64 owner;
	u64 live;
	u64 pqr;
	u64 switches;
	u64 switch_sampled;
	u64 switch_cycles;
	u64 pqr_writes;
	DECLARE_BITMAP(ran, MW_RDT_RMIDS);
	u64 ran_since;
	u32 foreign_rmid;
	u64 foreign_writes;
	u64 notice_ns;
	u64 now_ns;
	bool ticking;

	struct mw_rdt_domain *domain;
	struct hrtimer bout;
	u32 rdt_cursor;
	u32 rdt_holder;
	bool rdt_first;
	u32 rdt_left;
	u64 rdt_until_ns;
	u64 rdt_rest_ns;
	u64 rdt_ops;
	u64 rdt_ops_max;
	u64 rdt_reads;
	u64 rdt_waits;
	u64 rdt_busy;
	u64 rdt_cycles;
	u64 rdt_sync_cycles;
	u64 rdt_age_max;

	struct hrtimer timer;
	struct irq_work wake;
	u32 state;
	u32 overruns;
	u64 period_ns;
	u64 last_tick;
	u64 ticks;
	u64 missed;
	u64 tick_cycles;
	u64 tick_ns;
	struct mw_cost cost;
	u64 irqs_off_max;
	u64 jitter_max;
	u32 jitter[MW_JITTER_CLASSES];
};

DECLARE_PER_CPU(struct mw_cpu, mw_cpu);

/* On the CPU in question, interrupts off. */
void mw_cpu_report_state(u32 state, u64 since);
struct mw_span mw_cpu_begin_span(struct mw_cpu *cpu);
void mw_cpu_end_span(struct mw_cpu *cpu, const struct mw_span *begin);
void mw_cpu_resume_tick(struct mw_cpu *cpu);

#endif /* _MW_CPU_H */
