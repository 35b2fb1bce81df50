// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reading the RDT counters, and the records about them. At its tick a CPU tells
 * its domain which RMIDs ran on it, and reads its share of what the domain has
 * to read; rdt-plan.h says which, and rdt-bout.h when. An RMID that ran is
 * therefore read once more after its process has ended. This reading is the last
 * one of the old owner and the baseline of the next.
 *
 * A CPU takes an RMID in the plan, reads it, and releases it. Nobody else reads it
 * meanwhile, so the time of successive values of an RMID increases whichever CPU
 * reads. Records are sent after the release.
 */
#include <linux/cpu.h>
#include <linux/err.h>

#include "clock.h"
#include "owner.h"
#include "rdt.h"
#include "rdt-ctr.h"
#include "rdt-domain.h"
#include "rdt-read.h"
#include "residue.h"
#include "resctrl.h"
#include "trace.h"

/* Each event of an RMID takes a write to EVTSEL and a read of CTR. Checks do not count. */
#define OPS_PER_EVENT 2

/* RMIDs that are read in one go with interrupts off where no tick sets a limit. */
#define BATCH 8

/*
 * An RMID that holds cache without running is read again after REFRESH_NS if a
 * CPU has budget left: at most REFRESHES of them in one go. The CPUs of a domain
 * together look at each RMID twice in REFRESH_NS, but at LOOK of them in a slot at
 * most, and each CPU at one or more.
 */
#define REFRESH_NS 20000000ULL
#define REFRESHES  2
#define LOOK	   32

/* Sets of assignable counters that get another RMID in one go, at most. */
#define PASSES 4

DEFINE_STATIC_KEY_FALSE(mw_rdt_read_key);

static u64 settle_ns;

/* Register operations that it takes to read an RMID; 0 if no counters are read. */
u32 mw_rdt_read_ops(void)
{
	return OPS_PER_EVENT * hweight32(mw_rdt.format.events);
}

/* @ns: the longest time until a domain learns that an RMID ran */
void mw_rdt_read_settle(u64 ns)
{
	WRITE_ONCE(settle_ns, ns);
}

void mw_rdt_read_arm(void)
{
	if (mw_rdt.format.events)
		static_branch_enable(&mw_rdt_read_key);
}

/* No CPU is in a domain any more. */
void mw_rdt_read_disarm(void)
{
	static_branch_disable(&mw_rdt_read_key);
	mw_residue_forget();
	mw_rdt_domain_free_all();
}

/* ------------------------------------------------------------- registers */

static u64 read_counter(struct mw_rdt_domain *d, u32 rmid, u32 event)
{
	return mw_rdt_ctr_read(mw_rdt_domain_ctr(d), (u64)(d->base + rmid) << 32 | (event + 1));
}

static void read_counters(struct mw_rdt_domain *d, struct mw_cpu *cpu, u32 rmid,
			  struct mw_rdt_owner *owner, u64 *reg)
{
	u32 end = d->abmc.on ? MEMWATCH_RDT_MBM_TOTAL : MEMWATCH_RDT_MAX, event;

	lockdep_assert_irqs_disabled();
	if (d->shared)
		lockdep_assert_held(&d->lock);
	if (!d->abmc.on)
		owner->uncounted = mw_rdt_count_take_uncounted(&d->count[rmid], owner->generation);
	for (event = 0; event < end; event++)
		reg[event] = mw_rdt.format.events >> event & 1 ? read_counter(d, rmid, event) : 0;
	if (d->abmc.on)
		mw_rdt_abmc_read(&d->abmc, mw_rdt_domain_ctr(d), &d->count[rmid], owner, rmid, reg);
	cpu->rdt_ops += mw_rdt_read_ops();
	cpu->rdt_reads++;
}

/* --------------------------------------------------------------- readings */

/*
 * The pool is read without its lock. An RMID that changes hands at this moment
 * may count a few nanoseconds for the wrong owner.
 */
static bool read_rmid_in_use(u32 rmid)
{
	return !rmid || mw_owner_exists(rmid);
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

/* Did the hardware count the bandwidth of this RMID at the last reading, if there was one? */
static bool read_is_tracked(const struct mw_rdt_count *count)
{
	return !count->read_ns ||
	       count->status[MEMWATCH_RDT_MBM_TOTAL] != MEMWATCH_STATUS_UNAVAILABLE;
}

/*
 * Read @rmid, which this CPU has taken. @since: it ran on this CPU after that time;
 * 0 if it did not. Returns true if it ran or a value has changed. That happens without
 * the RMID running: its dirty lines are written back when others need the room, or
 * want them in another domain.
 */
static bool read_rmid(struct mw_rdt_domain *d, struct mw_cpu *cpu, u32 rmid, u64 since,
		      struct memwatch_record_rdt *rec)
{
	struct mw_rdt_count *count = &d->count[rmid];
	u64 others = mw_rdt_plan_ran_since(&d->plan, rmid);
	u64 reg[MEMWATCH_RDT_MAX], now, level = count->occupancy;
	struct mw_rdt_owner owner = read_owner_of(rmid);
	bool moved, tracked = read_is_tracked(count);

	if (!since || (others && others < since))
		since = others;
	if (since)
		mw_rdt_count_ran(count, since);
	read_counters(d, cpu, rmid, &owner, reg);
	now = max(mw_now(), count->read_ns + 1);
	moved = mw_rdt_count_read(count, &mw_rdt.format, reg, &owner, now);
	mw_residue_add(rmid, count->occupancy - level);
	mw_residue_note_tracked(rmid, tracked, read_is_tracked(count));
	read_fill_record(d, rmid, now, rec);
	cpu->now_ns = now;
	if (since)
		cpu->rdt_age_max = max(cpu->rdt_age_max, now - min(now, since));
	return since || moved || count->occupancy != level;
}

/* The first reading is always allowed, so that there is progress however late it is. */
static bool read_fits(const struct mw_cpu *cpu, const struct mw_rdt_bout *bout)
{
	return bout->most && (!bout->longest_ns || cpu->now_ns + bout->longest_ns <= bout->end_ns);
}

/* Read @rmid, which this CPU has taken, and report it if it is in use or has changed. */
static void read_taken(struct mw_rdt_domain *d, struct mw_cpu *cpu, struct mw_rdt_bout *bout,
		       u32 rmid, u64 since, bool report)
{
	struct memwatch_record_rdt rec;
	u64 before = cpu->now_ns;

	report |= read_rmid(d, cpu, rmid, since, &rec);
	mw_rdt_plan_release(&d->plan, rmid, true);
	if (report)
		trace_memwatch_rdt_sample(&rec, cpu->ticking);
	bout->most--;
	bout->longest_ns = max(bout->longest_ns, rec.h.time_ns - min(rec.h.time_ns, before));
}

/**
 * mw_rdt_read_announce - tell the domain which RMIDs ran on this CPU
 * @d: the domain
 * @cpu: this CPU, interrupts off
 *
 * The owner that runs now is noted for the next call.
 */
void mw_rdt_read_announce(struct mw_rdt_domain *d, struct mw_cpu *cpu)
{
	u32 rmid;

	mw_rdt_abmc_ran(&d->abmc, cpu->ran, cpu->now_ns);
	for_each_set_bit (rmid, cpu->ran, d->plan.nr) {
		mw_rdt_plan_ran(&d->plan, rmid, cpu->ran_since);
		__clear_bit(rmid, cpu->ran);
	}
	mw_rdt_domain_run(d, cpu->owner);
	__set_bit((u32)cpu->owner, cpu->ran);
	cpu->ran_since = cpu->now_ns;
}

/**
 * mw_rdt_read_own - read what ran on this CPU, and queue what does not fit
 * @d: its domain
 * @cpu: this CPU, interrupts off
 * @bout: what it may read
 *
 * Return: true if everything did fit
 */
bool mw_rdt_read_own(struct mw_rdt_domain *d, struct mw_cpu *cpu, struct mw_rdt_bout *bout)
{
	cycles_t begin;
	bool all = true;
	u32 rmid;

	for_each_set_bit (rmid, cpu->ran, d->plan.nr) {
		all = read_fits(cpu, bout);
		if (!all)
			break;
		if (!mw_rdt_plan_take_one(&d->plan, rmid))
			continue;
		__clear_bit(rmid, cpu->ran);
		read_taken(d, cpu, bout, rmid, cpu->ran_since, true);
	}
	begin = get_cycles();
	mw_rdt_read_announce(d, cpu);
	cpu->rdt_sync_cycles += get_cycles() - begin;
	return all;
}

/* Read RMIDs from the queue. Returns true if nothing is left in it. */
bool mw_rdt_read_queue(struct mw_rdt_domain *d, struct mw_cpu *cpu, struct mw_rdt_bout *bout)
{
	u32 rmid, *cursor = d->shared ? &d->cursor : &cpu->rdt_cursor;
	cycles_t begin;
	bool found;

	while (read_fits(cpu, bout)) {
		begin = get_cycles();
		found = mw_rdt_plan_take(&d->plan, cursor, &rmid);
		cpu->rdt_sync_cycles += get_cycles() - begin;
		if (!found)
			return true;
		read_taken(d, cpu, bout, rmid, 0, read_rmid_in_use(rmid));
	}
	return false;
}

/**
 * mw_rdt_read_pass_counters - give assignable counters from one RMID to another
 * @d: the domain; its lock is held
 * @cpu: this CPU, interrupts off
 *
 * They are read for the last time before, also if they were read in this slot: what was
 * counted since would be lost.
 */
void mw_rdt_read_pass_counters(struct mw_rdt_domain *d, struct mw_cpu *cpu)
{
	struct mw_rdt_bout bout = { .most = PASSES };
	u32 at, rmid;

	while (bout.most && mw_rdt_abmc_choose(&d->abmc, READ_ONCE(settle_ns), &at, &rmid)) {
		if (!mw_rdt_plan_take_always(&d->plan, rmid))
			return;
		read_taken(d, cpu, &bout, rmid, 0, true);
		mw_rdt_abmc_pass(&d->abmc, d->count, at);
	}
}

/* Does @rmid hold cache in this domain, and was not read recently? */
static bool read_is_holder(const struct mw_rdt_domain *d, u32 rmid, u64 now)
{
	return READ_ONCE(d->count[rmid].occupancy) &&
	       now >= READ_ONCE(d->count[rmid].read_ns) + REFRESH_NS;
}

/* How many RMIDs a CPU looks at. A domain learns of what ran within two slots. */
static u32 read_looks(const struct mw_rdt_domain *d)
{
	u64 due = d->plan.nr * READ_ONCE(settle_ns) / REFRESH_NS;

	return 1 + min_t(u64, due, LOOK) / READ_ONCE(d->nr_cpus);
}

/* Spend what is left of the budget on RMIDs that hold cache without running. */
void mw_rdt_read_holders(struct mw_rdt_domain *d, struct mw_cpu *cpu, struct mw_rdt_bout *bout)
{
	u32 rmid, looks = read_looks(d);

	bout->most = min_t(u32, bout->most, REFRESHES);
	for (; looks; looks--) {
		rmid = cpu->rdt_holder;
		cpu->rdt_holder = rmid + 1 < d->plan.nr ? rmid + 1 : 0;
		if (!read_is_holder(d, rmid, cpu->now_ns))
			continue;
		if (!read_fits(cpu, bout))
			return;
		if (mw_rdt_plan_take_one(&d->plan, rmid))
			read_taken(d, cpu, bout, rmid, 0, false);
	}
}

/* Report the last values of @rmid, which this CPU has taken, and their age. */
static void read_report_age(const struct mw_rdt_domain *d, const struct mw_cpu *cpu, u32 rmid)
{
	u64 now = cpu->now_ns;
	struct memwatch_record_rdt rec;
	u32 event;

	/* The last reading is about an earlier owner of the RMID. */
	if (d->count[rmid].generation != read_owner_of(rmid).generation)
		return;
	read_fill_record(d, rmid, now, &rec);
	rec.age_ns = now - min(now, d->count[rmid].read_ns);
	for (event = 0; event < MEMWATCH_RDT_MAX; event++)
		if (rec.status[event] == MEMWATCH_STATUS_OK)
			rec.status[event] = MEMWATCH_STATUS_STALE;
	trace_memwatch_rdt_sample(&rec, cpu->ticking);
}

/* Report RMIDs that did not fit with their last values and the age of these. */
void mw_rdt_read_report_stale(struct mw_rdt_domain *d, struct mw_cpu *cpu, u32 most, u64 end_ns)
{
	u32 rmid;

	while (most--) {
		cpu->now_ns = mw_now();
		if (cpu->now_ns >= end_ns)
			return;
		if (!mw_rdt_plan_take_stale(&d->plan, cpu->rdt_cursor, &rmid))
			return;
		cpu->rdt_waits++;
		read_report_age(d, cpu, rmid);
		mw_rdt_plan_release(&d->plan, rmid, false);
	}
}

/**
 * read_report_residue - report how much cache earlier owners of an RMID left behind
 * @rmid: an RMID that was just given out
 * @generation: its generation
 * @now: the time of the ALLOC record
 *
 * The values are those of the last good reading in each domain; nothing is read now. The
 * caller holds mw_lock, so the lock of the domain is not taken.
 *
 * Return: the number of records
 */
static u32 read_report_residue(u32 rmid, u32 generation, u64 now)
{
	const struct mw_rdt_domain *d;
	u32 sent = 0;

	if (!static_branch_unlikely(&mw_rdt_read_key) || !trace_memwatch_rdt_sample_enabled())
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
			.age_ns = now - min(now, READ_ONCE(d->count[rmid].occupancy_ns)),
		};

		memset(rec.status, MEMWATCH_STATUS_FIRST, sizeof(rec.status));
		if (!rec.value[MEMWATCH_RDT_OCCUPANCY])
			continue;
		trace_memwatch_rdt_sample(&rec, false);
		sent++;
	}
	return sent;
}

/**
 * mw_rdt_read_rotate - queue each RMID in use at least once a second
 * @d: a domain
 * @before: the time up to which this was done
 * @slot: present time
 *
 * Free RMIDs that still hold cache are queued as well, so that their residual
 * occupancy is known.
 */
void mw_rdt_read_rotate(struct mw_rdt_domain *d, u64 before, u64 slot)
{
	u32 rmid, n = mw_rdt_plan_due(&d->plan, before, slot, MW_RDT_ROTATION_NS, &rmid);

	for (; n; n--, rmid = rmid + 1 < d->plan.nr ? rmid + 1 : 0)
		if (read_rmid_in_use(rmid) || READ_ONCE(d->count[rmid].occupancy))
			mw_rdt_plan_add(&d->plan, rmid);
}

/* ---------------------------------------------------- beginning and end */

void mw_rdt_read_init(void)
{
	mw_owner_on_alloc(read_report_residue);
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

	if (!static_branch_unlikely(&mw_rdt_read_key))
		return;
	for (rmid = 0; rmid < d->plan.nr && !mw_resctrl_is_mounted(); rmid = end) {
		end = min(rmid + BATCH, d->plan.nr);
		raw_spin_lock_irqsave(&d->lock, flags);
		mw_rdt_ctr_begin(mw_rdt_domain_ctr(d));
		for (; rmid < end; rmid++) {
			struct mw_rdt_count *count = &d->count[rmid];
			struct mw_rdt_owner owner = read_owner_of(rmid);
			bool tracked = read_is_tracked(count);
			u64 level = count->occupancy;

			read_counters(d, cpu, rmid, &owner, reg);
			mw_rdt_count_begin(count, &mw_rdt.format, reg, &owner, mw_now());
			mw_residue_add(rmid, count->occupancy - level);
			mw_residue_note_tracked(rmid, tracked, read_is_tracked(count));
		}
		raw_spin_unlock_irqrestore(&d->lock, flags);
	}
}

/* Read the whole queue, including what was meant for the next slot. */
static void read_whole_queue(struct mw_rdt_domain *d, struct mw_cpu *cpu)
{
	unsigned long flags;
	bool all = false;
	u64 before;

	mw_rdt_plan_slot(&d->plan, d->plan.slot_ns + 1, &before);
	while (!all && !mw_resctrl_is_mounted()) {
		struct mw_rdt_bout bout = { .most = BATCH, .end_ns = U64_MAX };

		raw_spin_lock_irqsave(&d->lock, flags);
		mw_rdt_ctr_begin(mw_rdt_domain_ctr(d));
		all = mw_rdt_read_queue(d, cpu, &bout);
		raw_spin_unlock_irqrestore(&d->lock, flags);
	}
}

/* @all: this is the last CPU of the domain, so read what is left in the queue. */
static void read_what_ran(struct mw_rdt_domain *d, struct mw_cpu *cpu, bool all)
{
	unsigned long flags;

	if (!static_branch_unlikely(&mw_rdt_read_key))
		return;
	local_irq_save(flags);
	cpu->now_ns = mw_now();
	mw_rdt_read_announce(d, cpu);
	local_irq_restore(flags);
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
	WRITE_ONCE(d->nr_cpus, d->nr_cpus + 1);
	if (d->nr_cpus == 1) {
		mw_rdt_abmc_begin(&d->abmc);
		read_take_baseline(d, cpu);
	}
	bitmap_zero(cpu->ran, MW_RDT_RMIDS);
	cpu->ran_since = mw_now();
	/* CPUs that tick at the same time begin to search in different places. */
	cpu->rdt_cursor = smp_processor_id() * MW_RDT_GROUP % d->plan.nr;
	cpu->rdt_holder = cpu->rdt_cursor;
	cpu->rdt_rest_ns = 0;
	cpu->domain = d;
	return 0;
}

/* A CPU stops. What ran on it is read by another CPU of the domain, or now. */
void mw_rdt_read_leave(struct mw_cpu *cpu)
{
	struct mw_rdt_domain *d = cpu->domain;

	hrtimer_cancel(&cpu->bout);
	read_what_ran(d, cpu, d->nr_cpus == 1);
	WRITE_ONCE(d->nr_cpus, d->nr_cpus - 1);
	if (!d->nr_cpus)
		mw_rdt_abmc_end(&d->abmc);
	cpu->domain = NULL;
}

static void read_report_end(struct mw_rdt_domain *d)
{
	struct memwatch_record_rdt rec;
	unsigned long flags;
	u32 rmid;

	for (rmid = 0; rmid < d->plan.nr; rmid++) {
		while (!mw_rdt_plan_take_always(&d->plan, rmid))
			cpu_relax();
		local_irq_save(flags);
		read_fill_record(d, rmid, max(mw_now(), d->count[rmid].read_ns + 1), &rec);
		memset(rec.status, MEMWATCH_STATUS_UNAVAILABLE, sizeof(rec.status));
		memset(rec.value, 0, sizeof(rec.value));
		rec.generation = read_owner_of(rmid).generation;
		if (read_rmid_in_use(rmid))
			trace_memwatch_rdt_sample(&rec, false);
		local_irq_restore(flags);
		mw_rdt_plan_release(&d->plan, rmid, false);
	}
}

/*
 * RDT is given up during a session. No counter is read from now on, and a
 * record says so for each RMID in use. What was read last no longer decides which RMID
 * is allocated, because it would never change again. Domains are freed only when the
 * session ends. The caller holds cpus_read_lock.
 */
void mw_rdt_read_end(void)
{
	struct mw_rdt_domain *d;

	if (!mw_rdt.format.events)
		return;
	static_branch_disable_cpuslocked(&mw_rdt_read_key);
	list_for_each_entry (d, &mw_rdt_domains, link)
		read_report_end(d);
	mw_residue_forget();
}
