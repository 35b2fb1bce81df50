// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * When a CPU reads RDT counters, see rdt-bout.h.
 */
#include <linux/hrtimer.h>
#include <linux/module.h>

#include "clock.h"
#include "compat/hrtimer.h"
#include "rdt.h"
#include "rdt-bout.h"
#include "rdt-ctr.h"
#include "rdt-domain.h"
#include "rdt-read.h"
#include "resctrl.h"

/* From the beginning of a bout to the next one, so that other work has its turn. */
#define BOUT_INTERVAL_NS 250000ULL

/* RMIDs that were not read are reported for so much longer than reading may take. */
#define REPORT_NS(limit) ((limit) / 4)

static uint rdt_budget = 48;
module_param(rdt_budget, uint, 0400);
MODULE_PARM_DESC(rdt_budget,
		 "limit of operations on RDT counter registers per tick and CPU (default 48)");

static uint rdt_time_ns = 30000;
module_param(rdt_time_ns, uint, 0400);
MODULE_PARM_DESC(rdt_time_ns, "limit of the time in ns for which a CPU reads RDT counters "
			      "with interrupts off (default 30000)");

/**
 * struct bout_pace - how often a CPU reads, and how much
 * @slot_ns: how long a slot is
 * @rmids: RMIDs that it may read in a slot
 */
struct bout_pace {
	u64 slot_ns;
	u32 rmids;
};

/* Written with CPU hotplug held off: of a CPU that ticks, and of one that the cpumask excludes. */
static struct bout_pace tick_pace, excluded_pace = { .slot_ns = MW_RDT_BOUT_EXCLUDED_NS };
static u32 rmids_per_bout;

static u32 bout_share(u64 slot_ns)
{
	return mw_rdt_plan_share(mw_rdt.nr_rmids + 1, rdt_budget, mw_rdt_read_ops(), slot_ns);
}

static void bout_set_limits(void)
{
	WRITE_ONCE(tick_pace.rmids, bout_share(tick_pace.slot_ns));
	WRITE_ONCE(excluded_pace.rmids, bout_share(excluded_pace.slot_ns));
	WRITE_ONCE(rmids_per_bout, bout_share(0));
}

/* A parameter that is out of range is refused. */
int mw_rdt_bout_init(void)
{
	if (rdt_budget && rdt_time_ns)
		return 0;
	pr_err("rdt_budget and rdt_time_ns must not be 0\n");
	return -EINVAL;
}

/**
 * mw_rdt_bout_configure - the configuration of the ticks has changed
 * @period_ns: their period
 * @all_tick: whether all CPUs tick; the others are asked every MW_RDT_BOUT_EXCLUDED_NS
 */
void mw_rdt_bout_configure(u64 period_ns, bool all_tick)
{
	WRITE_ONCE(tick_pace.slot_ns, period_ns);
	bout_set_limits();
	mw_rdt_read_settle(2 *
			   (all_tick ? period_ns : max_t(u64, period_ns, MW_RDT_BOUT_EXCLUDED_NS)));
}

/* Register operations per tick and CPU in force; 0 if no counters are read. */
u32 mw_rdt_bout_budget(void)
{
	return READ_ONCE(tick_pace.rmids) * mw_rdt_read_ops();
}

/* ------------------------------------------------------------------- bouts */

/* Does another bout fit into this slot after one that began at @begin? */
static bool bout_may_follow(const struct mw_cpu *cpu, u64 begin)
{
	return begin + BOUT_INTERVAL_NS + rdt_time_ns <= cpu->rdt_until_ns;
}

/* What to read: the queue, then what ran on this CPU. */
enum source {
	QUEUE = 1 << 0,
	OWN = 1 << 1,
};

/* Returns true if more is left that this CPU may read in this slot. */
static bool bout_read(struct mw_rdt_domain *d, struct mw_cpu *cpu, u32 sources)
{
	u32 most = min(cpu->rdt_left, READ_ONCE(rmids_per_bout));
	struct mw_rdt_bout bout = { .most = most, .end_ns = cpu->now_ns + rdt_time_ns };
	u64 begin = cpu->now_ns, ops = cpu->rdt_ops;
	bool all = true, again;

	if (sources & QUEUE)
		all = mw_rdt_read_queue(d, cpu, &bout);
	if (sources & OWN)
		all &= mw_rdt_read_own(d, cpu, &bout);
	cpu->rdt_left -= most - bout.most;
	again = !all && cpu->rdt_left && bout_may_follow(cpu, begin);
	if (all)
		mw_rdt_read_holders(d, cpu, &bout);
	else if (!again)
		mw_rdt_read_report_stale(d, cpu, most, bout.end_ns + REPORT_NS(rdt_time_ns));
	if (d->abmc.on)
		mw_rdt_read_pass_counters(d, cpu);
	cpu->rdt_ops_max = max(cpu->rdt_ops_max, cpu->rdt_ops - ops);
	return again;
}

/* Where EVTSEL is shared and another CPU reads, leave and try again later. */
static bool bout_try(struct mw_rdt_domain *d, struct mw_cpu *cpu, u32 sources)
{
	bool again;

	if (!d->shared)
		return bout_read(d, cpu, sources);
	if (!raw_spin_trylock(&d->lock)) {
		cpu->rdt_busy++;
		return bout_may_follow(cpu, cpu->now_ns);
	}
	mw_rdt_ctr_begin(&d->ctr);
	again = bout_read(d, cpu, sources);
	raw_spin_unlock(&d->lock);
	return again;
}

static enum hrtimer_restart bout_continue(struct hrtimer *timer)
{
	struct mw_cpu *cpu = container_of(timer, struct mw_cpu, bout);
	struct mw_span span = mw_cpu_begin_span(cpu);
	bool again;

	if (!static_branch_unlikely(&mw_rdt_read_key) || !cpu->domain || mw_resctrl_is_mounted())
		return HRTIMER_NORESTART;
	again = bout_try(cpu->domain, cpu, QUEUE);
	cpu->rdt_cycles += get_cycles() - span.cycles;
	mw_cpu_end_span(cpu, &span);
	if (!again)
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, ns_to_ktime(BOUT_INTERVAL_NS));
	return HRTIMER_RESTART;
}

/* -------------------------------------------------------------------- tick */

static void bout_begin(struct mw_rdt_domain *d, struct mw_cpu *cpu, u64 slot, u32 sources,
		       const struct bout_pace *pace)
{
	u64 length = READ_ONCE(pace->slot_ns), begin = cpu->now_ns;
	u32 cpus = READ_ONCE(d->nr_cpus);
	bool again;

	cpu->rdt_left = READ_ONCE(pace->rmids);
	cpu->rdt_until_ns = slot + length;
	if (d->shared) {
		if (!mw_rdt_plan_elect(&d->plan, slot, length, cpus, &cpu->rdt_rest_ns))
			return;
		cpu->rdt_left *= cpus;
	}
	again = bout_try(d, cpu, sources);
	/* A CPU that ticks a little later puts into the queue what must be read, too. */
	if (d->shared)
		again = bout_may_follow(cpu, begin);
	if (again)
		hrtimer_start(&cpu->bout, ns_to_ktime(begin + BOUT_INTERVAL_NS),
			      HRTIMER_MODE_ABS_PINNED_HARD);
}

/* Tell the domain what ran on this CPU, and read its share. Is it the first in the slot? */
static bool bout_begin_slot(struct mw_rdt_domain *d, struct mw_cpu *cpu, u64 slot,
			    const struct bout_pace *pace)
{
	cycles_t begin = get_cycles();
	u32 sources = OWN;
	bool first;
	u64 before;

	first = mw_rdt_plan_slot(&d->plan, slot, &before);
	if (first)
		mw_rdt_read_rotate(d, before, slot);
	if (d->shared) {
		mw_rdt_read_announce(d, cpu);
		sources = QUEUE;
	} else if (first || mw_rdt_plan_is_crowded(&d->plan)) {
		sources |= QUEUE;
	}
	cpu->rdt_sync_cycles += get_cycles() - begin;
	bout_begin(d, cpu, slot, sources, pace);
	cpu->rdt_cycles += get_cycles() - begin;
	return first;
}

/**
 * mw_rdt_bout_tick - a CPU has a tick
 * @cpu: this CPU, interrupts off
 * @expected: when the tick was due
 */
void mw_rdt_bout_tick(struct mw_cpu *cpu, u64 expected)
{
	struct mw_rdt_domain *d = cpu->domain;

	if (!static_branch_unlikely(&mw_rdt_read_key) || !d)
		return;
	cpu->rdt_first = bout_begin_slot(d, cpu, expected, &tick_pace);
	if (cpu->rdt_first)
		WRITE_ONCE(d->ticked_ns, expected);
}

/*
 * Does the queue hold RMIDs that must be read before this CPU may stop its tick? The first CPU of
 * a slot goes on until they are read, so that the others may stop.
 */
bool mw_rdt_bout_is_behind(const struct mw_cpu *cpu)
{
	return static_branch_unlikely(&mw_rdt_read_key) && cpu->domain && cpu->rdt_first &&
	       !mw_rdt_plan_done(&cpu->domain->plan);
}

/* Has a CPU of the domain ticked lately? */
static bool bout_others_tick(const struct mw_rdt_domain *d, u64 now)
{
	u64 lately = max_t(u64, 2 * READ_ONCE(tick_pace.slot_ns), MW_RDT_BOUT_EXCLUDED_NS);

	return now < READ_ONCE(d->ticked_ns) + lately;
}

/**
 * mw_rdt_bout_excluded - ask a CPU that the cpumask excludes what ran on it
 * @slot: points to the time when the first CPU was asked
 *
 * It reads no counters, but leaves that to the CPUs of its domain that tick. Only if none
 * does, because all are excluded or sleep, nobody else can read, and it does.
 */
void mw_rdt_bout_excluded(void *slot)
{
	struct mw_cpu *cpu = this_cpu_ptr(&mw_cpu);
	struct mw_rdt_domain *d = cpu->domain;
	u64 now = *(const u64 *)slot;

	if (!static_branch_unlikely(&mw_rdt_read_key) || !d || !cpu->live ||
	    cpu->state != MW_TICK_EXCLUDED || mw_resctrl_is_mounted())
		return;
	cpu->now_ns = mw_now();
	if (bout_others_tick(d, now))
		mw_rdt_read_announce(d, cpu);
	else
		bout_begin_slot(d, cpu, now, &excluded_pace);
}

/* Before the first CPU joins a domain. The configuration may be older than mw_rdt. */
void mw_rdt_bout_arm(void)
{
	unsigned int id;

	for_each_possible_cpu (id)
		hrtimer_setup(&per_cpu(mw_cpu, id).bout, bout_continue, CLOCK_MONOTONIC,
			      HRTIMER_MODE_ABS_PINNED_HARD);
	bout_set_limits();
}
