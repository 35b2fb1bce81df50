/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The L3 domains: which CPUs belong to each of them, and the last readings of
 * each RMID in each of them.
 */
#ifndef _MW_RDT_DOMAIN_H
#define _MW_RDT_DOMAIN_H

#include <linux/list.h>
#include <linux/spinlock.h>

#include "rdt-abmc.h"
#include "rdt-count.h"
#include "rdt-ctr.h"
#include "rdt-plan.h"

/**
 * struct mw_rdt_domain - CPUs that share one set of RDT counters
 * @link: entry in mw_rdt_domains
 * @id: number of the L3 cache, or of the node with sub-NUMA clustering
 * @base: added to an RMID to get the number of its counter
 * @nr_cpus: CPUs that are in it now
 * @ticked_ns: the last slot that began with the tick of one of them
 * @shared: all CPUs of the domain share one EVTSEL (AMD)
 * @lock: with @shared, guards each pair of accesses to EVTSEL and CTR, @ctr, and @cursor.
 * 	Taken with interrupts off, in an interrupt only if it is free.
 * @ctr: with @shared, who else writes EVTSEL
 * @cursor: with @shared, where in @plan the next reading continues
 * @plan: which RMIDs are read when
 * @count: last readings, indexed by RMID. The CPU that has taken the RMID in @plan
 * 	writes them.
 * @abmc: assignable counters; has a lock of its own
 */
struct mw_rdt_domain {
	struct list_head link;
	u32 id;
	u32 base;
	u32 nr_cpus;
	u64 ticked_ns;
	bool shared;
	raw_spinlock_t lock;
	struct mw_rdt_ctr ctr;
	u32 cursor;
	struct mw_rdt_plan plan;
	struct mw_rdt_count *count;
	struct mw_rdt_abmc abmc;
};

/*
 * Grows in hotplug callbacks, and is walked without a lock. Emptied when the
 * session has ended.
 */
extern struct list_head mw_rdt_domains;

/*
 * A CPU has come online that has fewer RMIDs than may be in use. It runs with
 * RMID 0 until conflict.c, which polls this variable, has given up RDT.
 */
extern bool mw_rdt_small_cpu;

/* On the CPU in question, which is not live; may sleep. */
struct mw_rdt_domain *mw_rdt_domain_get(void);

u32 mw_rdt_domain_count(void);
u64 mw_rdt_domain_turns(void);
void mw_rdt_domain_free_all(void);
size_t mw_rdt_domain_memory(void);

/* The EVTSEL that the CPUs of a domain share; NULL if each has its own. */
static inline struct mw_rdt_ctr *mw_rdt_domain_ctr(struct mw_rdt_domain *d)
{
	return d->shared ? &d->ctr : NULL;
}

/* @owner is about to run on a CPU of this domain, or runs on it. */
static __always_inline void mw_rdt_domain_run(struct mw_rdt_domain *d, u64 owner)
{
	if (static_branch_unlikely(&mw_rdt_abmc_key) && d)
		mw_rdt_abmc_run(&d->abmc, d->count, owner);
}

#endif /* _MW_RDT_DOMAIN_H */
