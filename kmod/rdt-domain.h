/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The L3 domains: which there are, which CPUs belong to them, and what is known
 * of each RMID in each.
 */
#ifndef _MW_RDT_DOMAIN_H
#define _MW_RDT_DOMAIN_H

#include <linux/list.h>
#include <linux/spinlock.h>

#include "rdt-count.h"
#include "rdt-plan.h"

/**
 * struct mw_rdt_domain - CPUs that share RDT's counters
 * @link: in mw_rdt_domains
 * @id: number of the L3 cache; of the node, if that is clustered
 * @base: added to an RMID to get the number of its counter
 * @nr_cpus: how many are in it now
 * @lock: for the rest, and over each pair of EVTSEL and CTR: on AMD all CPUs of
 *	a domain share one EVTSEL. Interrupts are off.
 * @plan: what to read when
 * @count: indexed by RMID
 * @holder: where to go on looking for those that hold cache without running
 */
struct mw_rdt_domain {
	struct list_head link;
	u32 id;
	u32 base;
	u32 nr_cpus;
	raw_spinlock_t lock;
	struct mw_rdt_plan plan;
	struct mw_rdt_count *count;
	u32 holder;
};

/*
 * Grows in hotplug callbacks, which others need not hold off; emptied when
 * nothing is armed any more.
 */
extern struct list_head mw_rdt_domains;

/*
 * A CPU has come online that has fewer RMIDs than may be in use. It runs with
 * RMID 0 until conflict.c, which watches this, has given up RDT.
 */
extern bool mw_rdt_small_cpu;

/* On the CPU in question, which is not live; may sleep. */
struct mw_rdt_domain *mw_rdt_domain_get(void);

u32 mw_rdt_domain_count(void);
void mw_rdt_domain_free_all(void);
size_t mw_rdt_domain_memory(void);

#endif /* _MW_RDT_DOMAIN_H */
