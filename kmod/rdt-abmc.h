/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Assignable bandwidth monitoring counters (ABMC) of AMD. Where they are enabled, the
 * bandwidth of an RMID is counted only while a counter is assigned to it, and is read by
 * the number of the counter. Kernels since 6.18 enable them on each CPU that comes online,
 * whether resctrl is mounted or not. Occupancy is read by RMID as ever.
 */
#ifndef _MW_RDT_ABMC_H
#define _MW_RDT_ABMC_H

#include <linux/jump_label.h>
#include <linux/spinlock.h>

#include "rdt-assign.h"
#include "rdt-count.h"
#include "rdt-ctr.h"

/* On while a session runs on a machine whose counters are assigned. */
DECLARE_STATIC_KEY_FALSE(mw_rdt_abmc_key);

/**
 * struct mw_rdt_abmc - the assignable counters of one L3 domain
 * @lock: guards @assign and the configuration of the counters. Taken with interrupts off,
 * 	in the tick, also while the lock of the domain is held, and in the switch hook.
 * @on: the counters of this domain are assignable
 * @events: those of &mw_rdt_format when the session began; RDT may be given up before
 * 	the counters are given back
 * @nr_counters: number of counters that memwatch uses
 * @counter: their numbers
 * @assign: which RMIDs have counters
 */
struct mw_rdt_abmc {
	raw_spinlock_t lock;
	bool on;
	u32 events;
	u32 nr_counters;
	u8 counter[MW_RDT_COUNTERS];
	struct mw_rdt_assign assign;
};

/* Is this CPU one whose counters are assigned? */
bool mw_rdt_abmc_is_enabled(void);
u32 mw_rdt_abmc_sets(void);

/* On a CPU of the domain. The first two run while none of its CPUs is live. */
void mw_rdt_abmc_begin(struct mw_rdt_abmc *abmc);
void mw_rdt_abmc_end(struct mw_rdt_abmc *abmc);
void mw_rdt_abmc_begin_to_run(struct mw_rdt_abmc *abmc, struct mw_rdt_count *count, u64 owner);
void mw_rdt_abmc_ran(struct mw_rdt_abmc *abmc, const unsigned long *ran, u64 now);

/* The same, while the lock of the domain is held. */
void mw_rdt_abmc_read(struct mw_rdt_abmc *abmc, struct mw_rdt_ctr *ctr, struct mw_rdt_count *count,
		      struct mw_rdt_owner *owner, u32 rmid, u64 *reg);
bool mw_rdt_abmc_choose(struct mw_rdt_abmc *abmc, u64 settle_ns, u32 *at, u32 *rmid);
void mw_rdt_abmc_pass(struct mw_rdt_abmc *abmc, struct mw_rdt_count *count, u32 at);

/**
 * mw_rdt_abmc_run - an owner is about to run on this CPU, or runs on it
 * @abmc: the counters of the domain of this CPU, interrupts off
 * @count: the readings of its RMIDs
 * @owner: generation << 32 | RMID
 */
static __always_inline void mw_rdt_abmc_run(struct mw_rdt_abmc *abmc, struct mw_rdt_count *count,
					    u64 owner)
{
	u32 rmid = (u32)owner;

	if (abmc->on && !(READ_ONCE(abmc->assign.held[rmid / 64]) >> rmid % 64 & 1))
		mw_rdt_abmc_begin_to_run(abmc, count, owner);
}

#endif /* _MW_RDT_ABMC_H */
