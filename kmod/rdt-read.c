// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reading the RDT counters, and the records about them. At its tick a CPU tells
 * its domain which RMIDs ran on it, and reads its share of what the domain has
 * to read; rdt-plan.h says which. An RMID that ran is therefore read once more
 * after its process has ended. This reading is the last one of the old owner
 * and the baseline of the next.
 *
 * The lock of the domain is held for one RMID at a time, so that CPUs that tick
 * at the same time take turns. Records are sent without the lock. Their time is
 * read under it, so that the time of successive values of an RMID increases
 * whichever CPU reads.
 */
#include <linux/cpu.h>
#include <linux/err.h>
#include <linux/module.h>

#include "clock.h"
#include "compat/msr.h"
#include "owner.h"
#include "rdt.h"
#include "rdt-domain.h"
#include "rdt-read.h"
#include "trace.h"

/* Each event of an RMID takes a write to EVTSEL and a read of CTR. */
#define OPS_PER_EVENT 2

/* RMIDs that are read in one go with interrupts off where no tick sets a limit. */
#define BATCH 8

/*
 * An RMID that holds cache without running is read again after REFRESH_NS if a
 * tick has budget left: at most REFRESHES of them in a tick, found among LOOK
 * RMIDs.
 */
#define REFRESH_NS 20000000ULL
#define REFRESHES  2
#define LOOK	   16

static uint rdt_budget = 48;
module_param(rdt_budget, uint, 0400);
MODULE_PARM_DESC(rdt_budget,
		 "limit of operations on RDT counter registers per tick and CPU (default 48)");

static DEFINE_STATIC_KEY_FALSE(read_key);

/* Written with CPU hotplug held off. */
static u64 period;
static u32 rmids_per_tick;
static u64 settle_ns;

static u32 read_ops_per_rmid(void)
{
	return OPS_PER_EVENT * hweight32(mw_rdt.format.events);
}

/**
 * mw_rdt_read_configure - the configuration of the ticks has changed
 * @period_ns: their period
 * @all_tick: whether all CPUs tick; the others read every MW_RDT_READ_EXCLUDED_NS
 */
void mw_rdt_read_configure(u64 period_ns, bool all_tick)
{
	u64 delay = all_tick ? period_ns : max_t(u64, period_ns, MW_RDT_READ_EXCLUDED_NS);

	period = period_ns;
	WRITE_ONCE(rmids_per_tick,
		   mw_rdt_plan_share(mw_rdt.nr_rmids + 1, rdt_budget, read_ops_per_rmid(), period));
	WRITE_ONCE(settle_ns, 2 * delay);
}

/* Register operations per tick and CPU in force; 0 if no counters are read. */
u32 mw_rdt_read_budget(void)
{
	return READ_ONCE(rmids_per_tick) * read_ops_per_rmid();
}

void mw_rdt_read_arm(void)
{
	/* The configuration may have been set while RDT was not in use. */
	rmids_per_tick = mw_rdt_plan_share(mw_rdt.nr_rmids + 1, rdt_budget, read_ops_per_rmid(),
					   period);
	if (mw_rdt.format.events)
		static_branch_enable(&read_key);
}

/* No CPU is in a domain any more. */
void mw_rdt_read_disarm(void)
{
	static_branch_disable(&read_key);
	mw_owner_forget_residue();
	mw_rdt_domain_free_all();
}

/* ------------------------------------------------------------- registers */

static u64 read_counter(u32 number, u32 event)
{
	u64 value;

	wrmsrq(MW_MSR_QM_EVTSEL, (u64)number << 32 | (event + 1));
	rdmsrq(MW_MSR_QM_CTR, value);
	return value;
}

static void read_counters(const struct mw_rdt_domain *d, struct mw_cpu *cpu, u32 rmid, u64 *reg)
{
	u32 event;

	lockdep_assert_held(&d->lock);
	for (event = 0; event < MEMWATCH_RDT_MAX; event++)
		reg[event] = mw_rdt.format.events >> event & 1 ? read_counter(d->base + rmid, event)
							       : 0;
	cpu->rdt_ops += read_ops_per_rmid();
	cpu->rdt_reads++;
}

/* --------------------------------------------------------------- readings */

/*
 * The pool is read without its lock. An RMID that changes hands at this moment
 * may count a few nanoseconds for the wrong owner.
 */
static bool read_rmid_in_use(u32 rmid)
{
	return !rmid || READ_ONCE(mw_pool.entry[rmid].next) == MW_RMID_IN_USE;
}

static struct mw_rdt_owner read_owner_of(u32 rmid)
{
	const struct mw_rmid *r = &mw_pool.entry[rmid];

	if (!rmid)
		return (struct mw_rdt_owner){ 0 };
	return (struct mw_rdt_owner){
		.generation = READ_ONCE(r->generation),
		.free_ns = READ_ONCE(r->free_ns),
		.settle_ns = READ_ONCE(settle_ns),
	};
}

static void read_fill_record(const struct mw_rdt_domain *d, u32 rmid, u64 now,
			     struct memwatch_record_rdt *rec)
{
	*rec = (struct memwatch_record_rdt){
		.h = { .time_ns = now,
		       .type = MEMWATCH_RECORD_RDT,
		       .size = sizeof(*rec),
		       .cpu = smp_processor_id() },
		.domain = d->id,
	};
	mw_rdt_count_show(&d->count[rmid], &mw_rdt.format, rmid, rec);
}

/*
 * Returns true if a value has changed. That happens without the RMID running:
 * its dirty lines are written back when others need the room, or want them in
 * another domain.
 */
static bool read_rmid(struct mw_rdt_domain *d, struct mw_cpu *cpu, u32 rmid,
		      struct memwatch_record_rdt *rec)
{
	struct mw_rdt_count *count = &d->count[rmid];
	struct mw_rdt_owner owner = read_owner_of(rmid);
	u64 reg[MEMWATCH_RDT_MAX], now, level = count->occupancy;
	bool moved;

	read_counters(d, cpu, rmid, reg);
	now = max(mw_now(), count->read_ns + 1);
	moved = mw_rdt_count_read(count, &mw_rdt.format, reg, &owner, now);
	mw_owner_add_residue(rmid, count->occupancy - level);
	read_fill_record(d, rmid, now, rec);
	return moved || count->occupancy != level;
}

/* Read at most @most RMIDs from the queue. Returns how many fewer were read. */
static u32 read_queue(struct mw_rdt_domain *d, struct mw_cpu *cpu, u32 most)
{
	struct memwatch_record_rdt rec;
	bool found, report = false;
	u32 rmid;

	for (; most; most--) {
		raw_spin_lock(&d->lock);
		found = mw_rdt_plan_take(&d->plan, &rmid);
		if (found) {
			report = read_rmid_in_use(rmid) || d->count[rmid].ran_ns;
			report |= read_rmid(d, cpu, rmid, &rec);
		}
		raw_spin_unlock(&d->lock);
		if (!found)
			break;
		if (report)
			trace_memwatch_rdt_sample(&rec);
	}
	return most;
}

/* Find the next RMID that holds cache in this domain and was not read recently. */
static bool read_find_holder(struct mw_rdt_domain *d, u64 now, u32 *rmid)
{
	u32 i;

	for (i = 0; i < LOOK; i++) {
		*rmid = d->holder;
		d->holder = *rmid + 1 < d->plan.nr ? *rmid + 1 : 0;
		if (d->count[*rmid].occupancy && now - d->count[*rmid].read_ns >= REFRESH_NS)
			return true;
	}
	return false;
}

/* Spend what is left of the budget on RMIDs that hold cache without running. */
static void read_holders(struct mw_rdt_domain *d, struct mw_cpu *cpu, u32 most)
{
	struct memwatch_record_rdt rec;
	bool found, changed;
	u32 rmid;

	while (most--) {
		raw_spin_lock(&d->lock);
		found = read_find_holder(d, mw_now(), &rmid);
		changed = found && read_rmid(d, cpu, rmid, &rec);
		raw_spin_unlock(&d->lock);
		if (!found)
			return;
		if (changed)
			trace_memwatch_rdt_sample(&rec);
	}
}

/* Report RMIDs that did not fit with their last values and the age of these. */
static void read_report_stale(struct mw_rdt_domain *d, struct mw_cpu *cpu, u32 most)
{
	struct memwatch_record_rdt rec;
	u32 rmid, event;
	bool found;

	while (most--) {
		u64 now = mw_now();

		raw_spin_lock(&d->lock);
		found = mw_rdt_plan_take_stale(&d->plan, &rmid);
		if (found) {
			read_fill_record(d, rmid, now, &rec);
			rec.age_ns = now - min(now, d->count[rmid].read_ns);
		}
		raw_spin_unlock(&d->lock);
		if (!found)
			return;
		cpu->rdt_waits++;
		/* The last reading is about an earlier owner of the RMID. */
		if (rec.generation != read_owner_of(rmid).generation)
			continue;
		for (event = 0; event < MEMWATCH_RDT_MAX; event++)
			if (rec.status[event] == MEMWATCH_STATUS_OK)
				rec.status[event] = MEMWATCH_STATUS_STALE;
		trace_memwatch_rdt_sample(&rec);
	}
}

/**
 * read_report_residue - report how much cache earlier owners of an RMID left behind
 * @rmid: an RMID that was just given out
 * @generation: its generation
 * @now: the time of the ALLOC record
 *
 * The values are those of the last reading in each domain; nothing is read now. The
 * caller holds mw_lock, so the lock of the domain is not taken.
 *
 * Return: the number of records
 */
static u32 read_report_residue(u32 rmid, u32 generation, u64 now)
{
	const struct mw_rdt_domain *d;
	u32 sent = 0;

	if (!static_branch_unlikely(&read_key) || !trace_memwatch_rdt_sample_enabled())
		return 0;
	list_for_each_entry_lockless (d, &mw_rdt_domains, link) {
		struct memwatch_record_rdt rec = {
			.h = { .time_ns = now,
			       .type = MEMWATCH_RECORD_RDT,
			       .size = sizeof(rec),
			       .cpu = smp_processor_id() },
			.rmid = rmid,
			.generation = generation,
			.domain = d->id,
			.value = { READ_ONCE(d->count[rmid].occupancy) },
			.age_ns = now - min(now, READ_ONCE(d->count[rmid].read_ns)),
		};

		memset(rec.status, MEMWATCH_STATUS_FIRST, sizeof(rec.status));
		if (!rec.value[MEMWATCH_RDT_OCCUPANCY])
			continue;
		trace_memwatch_rdt_sample(&rec);
		sent++;
	}
	return sent;
}

/* -------------------------------------------------------------------- tick */

/*
 * Pass the RMIDs that ran on this CPU since the last call to the domain. The
 * owner that runs now is noted for the next call.
 */
static void read_note_ran(struct mw_rdt_domain *d, struct mw_cpu *cpu, u64 slot)
{
	u32 rmid;

	lockdep_assert_held(&d->lock);
	mw_rdt_plan_slot(&d->plan, slot);
	for_each_set_bit (rmid, cpu->ran, d->plan.nr) {
		mw_rdt_count_ran(&d->count[rmid], cpu->ran_since);
		mw_rdt_plan_ran(&d->plan, rmid, d->count[rmid].read_ns);
	}
	bitmap_zero(cpu->ran, MW_RDT_RMIDS);
	__set_bit((u32)cpu->owner, cpu->ran);
	cpu->ran_since = mw_now();
}

/*
 * Queue each RMID in use at least once a second, and free RMIDs that still hold
 * cache as well, so that their residual occupancy is known.
 */
static void read_rotate_rmids(struct mw_rdt_domain *d, u64 now)
{
	u32 rmid;

	lockdep_assert_held(&d->lock);
	while (mw_rdt_plan_turn(&d->plan, now, &rmid))
		if (read_rmid_in_use(rmid) || d->count[rmid].occupancy)
			mw_rdt_plan_add(&d->plan, rmid);
}

static void read_share(struct mw_rdt_domain *d, struct mw_cpu *cpu, u64 slot)
{
	u32 most = READ_ONCE(rmids_per_tick), left;
	u64 ops = cpu->rdt_ops;

	raw_spin_lock(&d->lock);
	read_note_ran(d, cpu, slot);
	read_rotate_rmids(d, cpu->ran_since);
	raw_spin_unlock(&d->lock);
	left = read_queue(d, cpu, most);
	if (left)
		read_holders(d, cpu, min_t(u32, left, REFRESHES));
	else
		read_report_stale(d, cpu, most);
	cpu->rdt_ops_max = max(cpu->rdt_ops_max, cpu->rdt_ops - ops);
}

/**
 * mw_rdt_read_tick - read the share of this CPU
 * @cpu: this CPU, interrupts off
 * @expected: when the tick was due
 */
void mw_rdt_read_tick(struct mw_cpu *cpu, u64 expected)
{
	if (static_branch_unlikely(&read_key) && cpu->domain)
		read_share(cpu->domain, cpu, expected);
}

/* Does the queue hold RMIDs that must be read before this CPU may stop its tick? */
bool mw_rdt_read_is_behind(const struct mw_cpu *cpu)
{
	struct mw_rdt_domain *d = cpu->domain;
	bool done;

	if (!static_branch_unlikely(&read_key) || !d)
		return false;
	raw_spin_lock(&d->lock);
	done = mw_rdt_plan_done(&d->plan);
	raw_spin_unlock(&d->lock);
	return !done;
}

/* Replaces the tick on a CPU that the cpumask excludes. */
void mw_rdt_read_excluded(void *unused)
{
	struct mw_cpu *cpu = this_cpu_ptr(&mw_cpu);

	if (cpu->live && cpu->state == MW_TICK_EXCLUDED)
		mw_rdt_read_tick(cpu, mw_now());
}

/* ---------------------------------------------------- beginning and end */

int mw_rdt_read_init(void)
{
	mw_owner_on_alloc(read_report_residue);
	return rdt_budget ? 0 : -EINVAL;
}

/*
 * Take a baseline of all RMIDs. None of the CPUs of the domain is live, so
 * nobody runs with any of the RMIDs there.
 */
static void read_take_baseline(struct mw_rdt_domain *d, struct mw_cpu *cpu)
{
	u64 reg[MEMWATCH_RDT_MAX];
	unsigned long flags;
	u32 rmid, end;

	if (!static_branch_unlikely(&read_key))
		return;
	for (rmid = 0; rmid < d->plan.nr; rmid = end) {
		end = min(rmid + BATCH, d->plan.nr);
		raw_spin_lock_irqsave(&d->lock, flags);
		for (; rmid < end; rmid++) {
			struct mw_rdt_count *count = &d->count[rmid];
			u64 level = count->occupancy;

			read_counters(d, cpu, rmid, reg);
			mw_rdt_count_begin(count, &mw_rdt.format, reg,
					   read_owner_of(rmid).generation, mw_now());
			mw_owner_add_residue(rmid, count->occupancy - level);
		}
		raw_spin_unlock_irqrestore(&d->lock, flags);
	}
}

/* Read the whole queue, including what was meant for the next slot. */
static void read_whole_queue(struct mw_rdt_domain *d, struct mw_cpu *cpu)
{
	unsigned long flags;
	bool more = true;

	raw_spin_lock_irqsave(&d->lock, flags);
	mw_rdt_plan_slot(&d->plan, d->plan.slot_ns + 1);
	raw_spin_unlock_irqrestore(&d->lock, flags);
	while (more) {
		local_irq_save(flags);
		more = !read_queue(d, cpu, BATCH);
		local_irq_restore(flags);
	}
}

/* @all: this is the last CPU of the domain, so read what is left in the queue. */
static void read_what_ran(struct mw_rdt_domain *d, struct mw_cpu *cpu, bool all)
{
	unsigned long flags;

	if (!static_branch_unlikely(&read_key))
		return;
	raw_spin_lock_irqsave(&d->lock, flags);
	read_note_ran(d, cpu, d->plan.slot_ns);
	raw_spin_unlock_irqrestore(&d->lock, flags);
	if (all)
		read_whole_queue(d, cpu);
}

/**
 * mw_rdt_read_join - add a CPU to its L3 domain
 * @cpu: this CPU
 *
 * Return: 0; -ENOMEM; -ERANGE if it has fewer RMIDs than may be in use
 */
int mw_rdt_read_join(struct mw_cpu *cpu)
{
	struct mw_rdt_domain *d;

	cpu->domain = NULL;
	d = mw_rdt_domain_get();
	if (IS_ERR_OR_NULL(d))
		return PTR_ERR_OR_ZERO(d);
	if (!d->nr_cpus++)
		read_take_baseline(d, cpu);
	bitmap_zero(cpu->ran, MW_RDT_RMIDS);
	cpu->ran_since = mw_now();
	cpu->domain = d;
	return 0;
}

/* A CPU stops. What ran on it is read by another CPU of the domain, or now. */
void mw_rdt_read_leave(struct mw_cpu *cpu)
{
	struct mw_rdt_domain *d = cpu->domain;

	if (!d)
		return;
	read_what_ran(d, cpu, d->nr_cpus == 1);
	d->nr_cpus--;
	cpu->domain = NULL;
}

static void read_report_end(struct mw_rdt_domain *d)
{
	struct memwatch_record_rdt rec;
	unsigned long flags;
	u32 rmid;

	for (rmid = 0; rmid < d->plan.nr; rmid++) {
		raw_spin_lock_irqsave(&d->lock, flags);
		read_fill_record(d, rmid, mw_now(), &rec);
		memset(rec.status, MEMWATCH_STATUS_UNAVAILABLE, sizeof(rec.status));
		memset(rec.value, 0, sizeof(rec.value));
		if (read_rmid_in_use(rmid))
			trace_memwatch_rdt_sample(&rec);
		raw_spin_unlock_irqrestore(&d->lock, flags);
	}
}

/*
 * RDT is given up during a session. No counter is read from now on, and a
 * record says so for each RMID in use. Domains are freed only when the session
 * ends. The caller holds cpus_read_lock.
 */
void mw_rdt_read_end(void)
{
	struct mw_rdt_domain *d;

	if (!mw_rdt.format.events)
		return;
	static_branch_disable_cpuslocked(&read_key);
	list_for_each_entry (d, &mw_rdt_domains, link)
		read_report_end(d);
}
