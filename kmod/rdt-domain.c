// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * L3 domains, see rdt-domain.h. A domain is created when its first CPU starts
 * and kept until the session ends, so that the counts of its RMIDs survive a
 * time in which all its CPUs are offline.
 */
#include <linux/cpu.h>
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "clock.h"
#include "fail.h"
#include "pqr.h"
#include "rdt-domain.h"
#include "rdt-probe.h"
#include "rdt.h"

LIST_HEAD(mw_rdt_domains);
bool mw_rdt_small_cpu;

static struct mw_rdt_domain *domain_find(u32 id)
{
	struct mw_rdt_domain *d;

	list_for_each_entry (d, &mw_rdt_domains, link)
		if (d->id == id)
			return d;
	return NULL;
}

static struct mw_rdt_domain *domain_create(u32 id, u32 base)
{
	struct mw_rdt_domain *d;

	d = mw_fail(MW_FAIL_DOMAIN) ? NULL : kvzalloc(sizeof(*d), GFP_KERNEL);
	if (!d)
		return NULL;
	d->count = kvcalloc(mw_rdt.nr_rmids + 1, sizeof(*d->count), GFP_KERNEL);
	if (!d->count) {
		kvfree(d);
		return NULL;
	}
	d->id = id;
	d->base = base;
	d->shared = mw_rdt.backend == MEMWATCH_BACKEND_AMD_QOS;
	raw_spin_lock_init(&d->lock);
	raw_spin_lock_init(&d->abmc.lock);
	mw_rdt_ctr_init(&d->ctr);
	mw_rdt_plan_init(&d->plan, mw_rdt.nr_rmids + 1, mw_now());
	list_add_tail_rcu(&d->link, &mw_rdt_domains);
	return d;
}

/* With sub-NUMA clustering each node of the cache is a domain. */
static void domain_locate(u32 *id, u32 *base)
{
	*base = 0;
	if (!mw_rdt_probe_l3(id))
		*id = 0;
	if (mw_rdt.nodes > 1) {
		*id = numa_node_id();
		*base = *id % mw_rdt.nodes * mw_rdt.per_node;
	}
}

/**
 * mw_rdt_domain_get - find or create the domain of this CPU
 *
 * Return: the domain; NULL if RDT is not in use; ERR_PTR(-ENOMEM);
 * ERR_PTR(-ERANGE) if the CPU has fewer RMIDs than may be in use
 */
struct mw_rdt_domain *mw_rdt_domain_get(void)
{
	struct mw_rdt_domain *d;
	u32 id, base;

	if (!static_branch_unlikely(&mw_pqr_key))
		return NULL;
	if (mw_rdt.backend != MEMWATCH_BACKEND_SIMULATED &&
	    mw_rdt_probe_rmids() < mw_rdt.nr_rmids) {
		WRITE_ONCE(mw_rdt_small_cpu, true);
		return ERR_PTR(-ERANGE);
	}
	domain_locate(&id, &base);
	d = domain_find(id) ?: domain_create(id, base);
	return d ?: ERR_PTR(-ENOMEM);
}

/* The number of domains with a CPU. Caller holds mw_control_lock, as for the next three. */
u32 mw_rdt_domain_count(void)
{
	struct mw_rdt_domain *d;
	u32 nr = 0;

	cpus_read_lock();
	list_for_each_entry (d, &mw_rdt_domains, link)
		nr += !!d->nr_cpus;
	cpus_read_unlock();
	return nr;
}

/* How often counters were taken from an RMID that runs, for one that waited. */
u64 mw_rdt_domain_turns(void)
{
	struct mw_rdt_domain *d;
	u64 turns = 0;

	cpus_read_lock();
	list_for_each_entry (d, &mw_rdt_domains, link)
		turns += READ_ONCE(d->abmc.assign.turns);
	cpus_read_unlock();
	return turns;
}

void mw_rdt_domain_free_all(void)
{
	struct mw_rdt_domain *d, *next;

	list_for_each_entry_safe (d, next, &mw_rdt_domains, link) {
		list_del(&d->link);
		kvfree(d->count);
		kvfree(d);
	}
}

size_t mw_rdt_domain_memory(void)
{
	struct mw_rdt_domain *d;
	size_t bytes = 0;

	cpus_read_lock();
	list_for_each_entry (d, &mw_rdt_domains, link)
		bytes += sizeof(*d) + d->plan.nr * sizeof(*d->count);
	cpus_read_unlock();
	return bytes;
}
