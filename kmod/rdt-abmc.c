// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Assignable bandwidth monitoring counters, see rdt-abmc.h. The registers are described
 * in AMD's manual (APM volume 2, 19.3.3.3).
 *
 * A counter is set to 0 when it is configured. The accesses are those that return an
 * error: resctrl, once it is mounted, may turn the feature off before memwatch has left.
 */
#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "clock.h"
#include "compat/msr.h"
#include "owner.h"
#include "rdt-abmc.h"
#include "rdt.h"

#define EVTSEL_COUNTER	  (1ULL << 31 | 1) /* read a counter by its number */

#define CFG_CONFIGURE	  BIT_ULL(63)
#define CFG_ENABLE	  BIT_ULL(62)
#define CFG_COUNTER_SHIFT 48
#define CFG_RMID_SHIFT	  32

/* What the register DSC says of a counter that is in use: also that it is no class's. */
#define DSC_ENABLED  CFG_ENABLE
#define DSC_SOURCE   (CFG_ENABLE | BIT_ULL(47) | GENMASK_ULL(43, 0))

#define EXT_CFG_ABMC BIT_ULL(0)

DEFINE_STATIC_KEY_FALSE(mw_rdt_abmc_key);

bool mw_rdt_abmc_is_enabled(void)
{
	u64 config;

	return !rdmsrq_safe(MW_MSR_L3_EXT_CFG, &config) && config & EXT_CFG_ABMC;
}

static bool abmc_has_event(u32 events, u32 i)
{
	return events >> (MEMWATCH_RDT_MBM_TOTAL + i) & 1;
}

/* Counters of one set. */
static u32 abmc_set_size(u32 events)
{
	return abmc_has_event(events, 0) + abmc_has_event(events, 1);
}

/* How many RMIDs of a domain can be counted at a time; 0 if counters are not assigned. */
u32 mw_rdt_abmc_sets(void)
{
	u32 size = abmc_set_size(mw_rdt.format.events);

	return size ? mw_rdt.counters / size : 0;
}

/* What counter @i of set @at is configured to count for @rmid, without the number. */
static u64 abmc_source(u32 rmid, u32 i)
{
	return CFG_ENABLE | (u64)rmid << CFG_RMID_SHIFT | mw_rdt.traffic_types[i];
}

/* The number of the counter for event @i of a set. */
static u64 abmc_counter(const struct mw_rdt_abmc *abmc, u32 at, u32 i)
{
	return abmc->counter[at * abmc_set_size(abmc->events) +
			     (i && abmc_has_event(abmc->events, 0))];
}

static void abmc_configure(const struct mw_rdt_abmc *abmc, u32 at)
{
	u32 rmid = abmc->assign.set[at].rmid, i;

	for (i = 0; i < MW_RDT_TRAFFIC; i++)
		if (abmc_has_event(abmc->events, i))
			wrmsrq_safe(MW_MSR_ABMC_CFG, CFG_CONFIGURE | abmc_source(rmid, i) |
							     abmc_counter(abmc, at, i)
								     << CFG_COUNTER_SHIFT);
}

/* The configuration of a counter; 0 if it is not in use, or cannot be read. */
static u64 abmc_describe(u64 counter)
{
	u64 value;

	if (wrmsrq_safe(MW_MSR_ABMC_CFG, counter << CFG_COUNTER_SHIFT) ||
	    rdmsrq_safe(MW_MSR_ABMC_DSC, &value) || !(value & DSC_ENABLED))
		return 0;
	return value & DSC_SOURCE;
}

/* --------------------------------------------------- beginning and end */

/*
 * Take the counters that nobody uses, from the highest on: resctrl begins with the lowest
 * ones when it is mounted, until memwatch notices.
 */
static void abmc_find_counters(struct mw_rdt_abmc *abmc)
{
	unsigned long flags;
	u32 counter;

	abmc->nr_counters = 0;
	for (counter = mw_rdt.counters; counter--;) {
		local_irq_save(flags);
		if (!abmc_describe(counter))
			abmc->counter[abmc->nr_counters++] = counter;
		local_irq_restore(flags);
	}
}

/**
 * mw_rdt_abmc_begin - the first CPU of a domain joins a session
 * @abmc: the counters of the domain
 */
void mw_rdt_abmc_begin(struct mw_rdt_abmc *abmc)
{
	unsigned long flags;

	abmc->events = mw_rdt.format.events;
	abmc->on = static_branch_unlikely(&mw_rdt_abmc_key) && abmc_set_size(abmc->events) &&
		   mw_rdt_abmc_is_enabled();
	if (!abmc->on)
		return;
	abmc_find_counters(abmc);
	raw_spin_lock_irqsave(&abmc->lock, flags);
	mw_rdt_assign_init(&abmc->assign, abmc->nr_counters / abmc_set_size(abmc->events),
			   mw_now());
	if (abmc->assign.nr)
		abmc_configure(abmc, 0);
	raw_spin_unlock_irqrestore(&abmc->lock, flags);
}

/* A counter that resctrl has configured for itself meanwhile is left alone. */
static void abmc_release(const struct mw_rdt_abmc *abmc, u32 at)
{
	u32 rmid = abmc->assign.set[at].rmid, i;

	for (i = 0; i < MW_RDT_TRAFFIC; i++) {
		u64 counter = abmc_counter(abmc, at, i);

		if (abmc_has_event(abmc->events, i) &&
		    abmc_describe(counter) == abmc_source(rmid, i))
			wrmsrq_safe(MW_MSR_ABMC_CFG, CFG_CONFIGURE | counter << CFG_COUNTER_SHIFT);
	}
}

/**
 * mw_rdt_abmc_end - the last CPU of a domain has left: give the counters back
 * @abmc: the counters of the domain
 */
void mw_rdt_abmc_end(struct mw_rdt_abmc *abmc)
{
	unsigned long flags;
	u32 at;

	if (!abmc->on)
		return;
	raw_spin_lock_irqsave(&abmc->lock, flags);
	for (at = 0; at < abmc->assign.nr; at++)
		if (abmc->assign.set[at].rmid != MW_RDT_NO_RMID)
			abmc_release(abmc, at);
	raw_spin_unlock_irqrestore(&abmc->lock, flags);
	abmc->on = false;
}

/* --------------------------------------------------------- assignment */

static void abmc_note_uncounted(struct mw_rdt_count *count, u32 generation)
{
	WRITE_ONCE(count->uncounted, (u64)generation + 1);
}

/*
 * The counters of @rmid are given to another RMID. While it does not run, only the cache
 * lines that it holds can move bytes: they are written back when others need the room. The
 * same is true of an owner that has ended.
 */
static void abmc_leave(struct mw_rdt_count *count, u32 rmid)
{
	if (rmid != MW_RDT_NO_RMID && READ_ONCE(count[rmid].occupancy))
		abmc_note_uncounted(&count[rmid], READ_ONCE(mw_pool.entry[rmid].generation));
}

/* Nothing changes for an owner that is known to wait while all sets are in use. */
static bool abmc_is_waiting(const struct mw_rdt_abmc *abmc, const struct mw_rdt_count *count,
			    u64 owner)
{
	const struct mw_rdt_assign *assign = &abmc->assign;
	u32 rmid = (u32)owner;

	return !READ_ONCE(assign->nr_free) && !READ_ONCE(assign->nr_leaving) &&
	       READ_ONCE(assign->waiting[rmid / 64]) >> rmid % 64 & 1 &&
	       READ_ONCE(count[rmid].uncounted) == (owner >> 32) + 1;
}

/* See mw_rdt_abmc_run(). */
void mw_rdt_abmc_begin_to_run(struct mw_rdt_abmc *abmc, struct mw_rdt_count *count, u64 owner)
{
	u32 rmid = (u32)owner, at, before;
	enum mw_rdt_run run;

	if (abmc_is_waiting(abmc, count, owner))
		return;
	raw_spin_lock(&abmc->lock);
	run = mw_rdt_assign_run(&abmc->assign, rmid, mw_now(), &at, &before);
	if (run == MW_RDT_RUN_GIVEN) {
		abmc_leave(count, before);
		abmc_configure(abmc, at);
	} else if (run == MW_RDT_RUN_UNCOUNTED) {
		abmc_note_uncounted(&count[rmid], owner >> 32);
	}
	raw_spin_unlock(&abmc->lock);
}

/* The RMIDs of the bitmap @ran have run on a CPU of the domain. */
void mw_rdt_abmc_ran(struct mw_rdt_abmc *abmc, const unsigned long *ran, u64 now)
{
	if (!abmc->on)
		return;
	raw_spin_lock(&abmc->lock);
	mw_rdt_assign_ran(&abmc->assign, ran, now);
	raw_spin_unlock(&abmc->lock);
}

/**
 * mw_rdt_abmc_choose - find a set of counters that another RMID is to have
 * @abmc: the counters of the domain
 * @settle_ns: the longest time until a domain learns that an RMID ran
 * @at: set to the set
 * @rmid: set to the RMID that has it, and must be read now
 *
 * Return: true if there is one
 */
bool mw_rdt_abmc_choose(struct mw_rdt_abmc *abmc, u64 settle_ns, u32 *at, u32 *rmid)
{
	bool found;

	if (!abmc->on)
		return false;
	raw_spin_lock(&abmc->lock);
	found = mw_rdt_assign_choose(&abmc->assign, mw_now(), settle_ns, mw_owner_exists, at);
	if (found)
		*rmid = abmc->assign.set[*at].rmid;
	raw_spin_unlock(&abmc->lock);
	return found;
}

/* The RMID of a set that was chosen has been read. */
void mw_rdt_abmc_pass(struct mw_rdt_abmc *abmc, struct mw_rdt_count *count, u32 at)
{
	u32 before;

	raw_spin_lock(&abmc->lock);
	before = abmc->assign.set[at].rmid;
	if (mw_rdt_assign_pass(&abmc->assign, at, mw_now(), mw_owner_exists)) {
		abmc_note_uncounted(&count[before], READ_ONCE(mw_pool.entry[before].generation));
		abmc_configure(abmc, at);
	}
	raw_spin_unlock(&abmc->lock);
}

/* ------------------------------------------------------------- reading */

static u64 abmc_read_counter(struct mw_rdt_ctr *ctr, u64 counter)
{
	u64 value = mw_rdt_ctr_read(ctr, counter << 32 | EVTSEL_COUNTER);
	u64 data = GENMASK_ULL(mw_rdt.format.width - 1, 0);

	return value & (MW_QM_CTR_ERROR | MW_QM_CTR_UNAVAILABLE | data);
}

/* Find the set that counts for @rmid. Its counts begin at 0 if they were never read. */
static struct mw_rdt_set *abmc_find_set(struct mw_rdt_abmc *abmc, struct mw_rdt_count *count,
					u32 rmid)
{
	struct mw_rdt_set *set = mw_rdt_assign_find(&abmc->assign, rmid);

	if (!set)
		return NULL;
	if (set->fresh)
		mw_rdt_count_restart(count);
	set->fresh = false;
	set->level = count->occupancy;
	return set;
}

/**
 * mw_rdt_abmc_read - read the bandwidth counters of an RMID
 * @abmc: the counters of the domain
 * @ctr: how they are read
 * @count: the readings of the RMID
 * @owner: its owner; @owner->uncounted is filled in
 * @rmid: the RMID
 * @reg: values of QM_CTR, indexed by &enum memwatch_rdt_event; filled in for bandwidth
 *
 * An RMID without counters reads as unavailable if it ran without them, or lost them while
 * it held cache. Otherwise nothing was moved since its last reading, which is repeated.
 */
void mw_rdt_abmc_read(struct mw_rdt_abmc *abmc, struct mw_rdt_ctr *ctr, struct mw_rdt_count *count,
		      struct mw_rdt_owner *owner, u32 rmid, u64 *reg)
{
	struct mw_rdt_set *set;
	u32 i;

	/* The switch hook may give a free set away. */
	raw_spin_lock(&abmc->lock);
	set = abmc_find_set(abmc, count, rmid);
	owner->uncounted = mw_rdt_count_take_uncounted(count, owner->generation);
	for (i = 0; i < MW_RDT_TRAFFIC; i++) {
		u64 *value = &reg[MEMWATCH_RDT_MBM_TOTAL + i];

		if (!abmc_has_event(abmc->events, i))
			*value = 0;
		else if (set)
			*value = abmc_read_counter(ctr,
						   abmc_counter(abmc, set - abmc->assign.set, i));
		else
			*value = owner->uncounted || !abmc->assign.nr ? MW_QM_CTR_UNAVAILABLE
								      : count->prev[i];
	}
	raw_spin_unlock(&abmc->lock);
}
