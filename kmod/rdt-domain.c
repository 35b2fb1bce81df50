// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * L3 domains, see rdt-domain.h. A domain is made when its first CPU starts and
 * kept until the session ends, so that what its RMIDs have moved is not
 * forgotten when all its CPUs go offline for a while.
 */
#include <linux/cpu.h>
#include <linux/mm.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "clock.h"
#include "conflict.h"
#include "fail.h"
#include "rdt-domain.h"
#include "rdt-probe.h"
#include "rdt-read.h"

LIST_HEAD(mw_rdt_domains);

static struct mw_rdt_domain *find(u32 id)
{
	struct mw_rdt_domain *d;

	list_for_each_entry (d, &mw_rdt_domains, link)
		if (d->id == id)
			return d;
	return NULL;
}

static struct mw_rdt_domain *create(u32 id, u32 base)
{
	struct mw_rdt_domain *d;

	d = mw_fail(MW_FAIL_DOMAIN) ? NULL : kzalloc(sizeof(*d), GFP_KERNEL);
	if (!d)
		return NULL;
	d->count = kvcalloc(mw_rdt.nr_rmids + 1, sizeof(*d->count), GFP_KERNEL);
	if (!d->count) {
		kfree(d);
		return NULL;
	}
	d->id = id;
	d->base = base;
	raw_spin_lock_init(&d->lock);
	mw_rdt_plan_init(&d->plan, mw_rdt.nr_rmids + 1, mw_now());
	list_add_tail_rcu(&d->link, &mw_rdt_domains);
	return d;
}

/* A clustered cache is as many domains as it has nodes. */
static void place(u32 *id, u32 *base)
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
 * mw_rdt_domain_join - a CPU starts
 * @cpu: this CPU
 *
 * Return: 0; -ENOMEM; -ERANGE, it has fewer RMIDs than may be in use
 */
int mw_rdt_domain_join(struct mw_cpu *cpu)
{
	struct mw_rdt_domain *d;
	u32 id, base;

	cpu->domain = NULL;
	if (!static_branch_unlikely(&mw_pqr_key))
		return 0;
	if (mw_rdt.backend != MEMWATCH_BACKEND_SIMULATED &&
	    mw_rdt_probe_rmids() < mw_rdt.nr_rmids) {
		mw_conflict_small_cpu();
		return -ERANGE;
	}
	place(&id, &base);
	d = find(id) ?: create(id, base);
	if (!d)
		return -ENOMEM;
	if (!d->nr_cpus++)
		mw_rdt_read_begin(d, cpu);
	bitmap_zero(cpu->ran, MW_RDT_RMIDS);
	cpu->ran_since = mw_now();
	cpu->domain = d;
	return 0;
}

/* A CPU has stopped. What it still knew is read by others, or now. */
void mw_rdt_domain_leave(struct mw_cpu *cpu)
{
	struct mw_rdt_domain *d = cpu->domain;

	if (!d)
		return;
	mw_rdt_read_last(d, cpu, d->nr_cpus == 1);
	d->nr_cpus--;
	cpu->domain = NULL;
}

/* How many are read now. Under the control mutex, as the next. */
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

void mw_rdt_domain_free_all(void)
{
	struct mw_rdt_domain *d, *next;

	list_for_each_entry_safe (d, next, &mw_rdt_domains, link) {
		list_del(&d->link);
		kvfree(d->count);
		kfree(d);
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
