// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * RDT monitoring as CPUID reports it on every CPU: the chain of leaves, the
 * CPUs that share an L3 cache, and the models whose counters are known to be
 * wrong.
 */
#include <linux/cpu.h>
#include <linux/kernel.h>
#include <linux/nodemask.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/topology.h>

#include "compat/cpuid.h"
#include "compat/msr.h"
#include "rdt-assign.h"
#include "rdt-probe.h"

#define LEAF_CACHE     0x4
#define LEAF_FEATURES  0x7
#define LEAF_TOPOLOGY  0xb
#define LEAF_RDT       0xf
#define LEAF_EXTENDED  0x80000000
#define LEAF_CACHE_AMD 0x8000001d
#define LEAF_QOS_AMD   0x80000020

/* Subleafs of LEAF_QOS_AMD, and the bit of its subleaf 0 that announces them. */
#define QOS_TYPES    3
#define QOS_COUNTERS 5
#define QOS_HAS_ABMC BIT(5)

/*
 * Types of transactions that a counter may count: all; and those for local bandwidth,
 * which are reads of local memory, of local slow memory, and writes past the cache.
 */
#define TYPES_TOTAL   GENMASK(6, 0)
#define TYPES_LOCAL   (BIT(0) | BIT(4) | BIT(2))

#define CACHE_LEVEL_3 3

/* Models of family 6. */
#define BROADWELL_X 0x4f
#define SKYLAKE_X   0x55

/* Models on which the nodes of a clustered L3 cache can share RMIDs. */
static const u8 snc_models[] = {
	0x6a, /* Ice Lake */
	0x8f, /* Sapphire Rapids */
	0xcf, /* Emerald Rapids */
	0xad, /* Granite Rapids */
	0xaf, /* Sierra Forest */
	0xdd, /* Clearwater Forest */
};

static bool probe_is_amd(void)
{
	return boot_cpu_data.x86_vendor == X86_VENDOR_AMD ||
	       boot_cpu_data.x86_vendor == X86_VENDOR_HYGON;
}

static bool probe_is_intel(u8 model)
{
	return boot_cpu_data.x86_vendor == X86_VENDOR_INTEL && boot_cpu_data.x86 == 6 &&
	       boot_cpu_data.x86_model == model;
}

/*
 * The highest L3 monitoring RMID of this CPU, or 0 and the reason. The highest
 * leaf is checked first: beyond it CPUID returns the data of another leaf,
 * which would look like thousands of RMIDs.
 */
static u32 probe_max_rmid(const char **why)
{
	u32 eax, ebx, ecx, edx;

	*why = "CPUID leaf 0xF is absent";
	if (cpuid_eax(0) < LEAF_RDT)
		return 0;
	*why = "CPUID reports no RDT monitoring";
	cpuid_count(LEAF_FEATURES, 0, &eax, &ebx, &ecx, &edx);
	if (!(ebx & BIT(12)))
		return 0;
	*why = "CPUID reports no L3 monitoring";
	cpuid_count(LEAF_RDT, 0, &eax, &ebx, &ecx, &edx);
	if (!(edx & BIT(1)))
		return 0;
	cpuid_count(LEAF_RDT, 1, &eax, &ebx, &ecx, &edx);
	return min_t(u32, ecx, MW_PQR_RMID);
}

/* The highest RMID of this CPU; 0 if it has no RDT monitoring. */
u32 mw_rdt_probe_rmids(void)
{
	const char *why;

	return probe_max_rmid(&why);
}

static u32 probe_apic_id(void)
{
	u32 eax, ebx, ecx, edx;

	if (cpuid_eax(0) >= LEAF_TOPOLOGY) {
		cpuid_count(LEAF_TOPOLOGY, 0, &eax, &ebx, &ecx, &edx);
		if (ebx & 0xffff)
			return edx;
	}
	return cpuid_ebx(1) >> 24;
}

/*
 * The number of the L3 cache of this CPU: the APIC id without the bits that
 * distinguish the CPUs that share the cache. The kernel numbers caches in this
 * way.
 */
bool mw_rdt_probe_l3(u32 *id)
{
	u32 leaf = probe_is_amd() ? LEAF_CACHE_AMD : LEAF_CACHE;
	u32 highest = probe_is_amd() ? cpuid_eax(LEAF_EXTENDED) : cpuid_eax(0);
	u32 eax, ebx, ecx, edx, i;

	if (highest < leaf)
		return false;
	for (i = 0; i < 16; i++) {
		cpuid_count(leaf, i, &eax, &ebx, &ecx, &edx);
		if (!(eax & 0x1f))
			return false;
		if ((eax >> 5 & 7) != CACHE_LEVEL_3)
			continue;
		*id = probe_apic_id() >> fls(eax >> 14 & 0xfff);
		return true;
	}
	return false;
}

/**
 * struct survey - what all online CPUs report
 * @lock: guards the other members
 * @nr_rmids: the smallest number of RMIDs of any CPU
 * @has_l3: whether each CPU has an L3 cache
 * @l3: number of the L3 cache of each CPU
 */
struct survey {
	raw_spinlock_t lock;
	u32 nr_rmids;
	bool has_l3;
	u32 *l3;
};

static void probe_survey_cpu(void *arg)
{
	struct survey *s = arg;
	u32 nr = mw_rdt_probe_rmids(), id = 0;
	bool has_l3 = mw_rdt_probe_l3(&id);

	raw_spin_lock(&s->lock);
	s->nr_rmids = min(s->nr_rmids, nr);
	s->has_l3 &= has_l3;
	s->l3[smp_processor_id()] = id;
	raw_spin_unlock(&s->lock);
}

/* The largest number of NUMA nodes that share one L3 cache; above 1 with clustering. */
static u32 probe_count_nodes(const struct survey *s)
{
	unsigned int a, b;
	nodemask_t nodes;
	u32 most = 1;

	for_each_online_cpu (a) {
		nodes_clear(nodes);
		for_each_online_cpu (b)
			if (s->l3[a] == s->l3[b])
				node_set(cpu_to_node(b), nodes);
		most = max_t(u32, most, nodes_weight(nodes));
	}
	return most;
}

/*
 * With clustering each node has RMIDs of its own. In sharing mode, an RMID in
 * PQR_ASSOC means that RMID of the node to which the CPU belongs, and the
 * number of the counter contains the node. In legacy mode each RMID belongs to
 * one node, so a process that moves between nodes cannot be measured.
 */
static const char *probe_cluster_mode(struct mw_rdt *rdt, u32 nodes)
{
	u64 config;
	u32 i;

	rdt->nodes = nodes;
	if (nodes == 1)
		return NULL;
	for (i = 0; i < ARRAY_SIZE(snc_models); i++)
		if (probe_is_intel(snc_models[i]))
			break;
	if (i == ARRAY_SIZE(snc_models))
		return "sub-NUMA clustering on a model where RMIDs cannot follow it";
	if (rdmsrq_safe(MW_MSR_SNC_CONFIG, &config) || config & 1)
		return "sub-NUMA clustering with RMIDs in legacy mode";
	rdt->per_node = (rdt->nr_rmids + 1) / nodes;
	rdt->nr_rmids = rdt->per_node - 1;
	return rdt->nr_rmids ? NULL : "sub-NUMA clustering leaves no RMIDs";
}

static const char *probe_survey_all(struct mw_rdt *rdt)
{
	struct survey s = { .nr_rmids = ~0U, .has_l3 = true };
	u32 nodes;

	s.l3 = kcalloc(nr_cpu_ids, sizeof(*s.l3), GFP_KERNEL);
	if (!s.l3)
		return "out of memory";
	raw_spin_lock_init(&s.lock);
	cpus_read_lock();
	on_each_cpu(probe_survey_cpu, &s, 1);
	nodes = probe_count_nodes(&s);
	cpus_read_unlock();
	kfree(s.l3);
	if (!s.nr_rmids)
		return "not all CPUs have RDT monitoring";
	if (!s.has_l3)
		return "CPUID does not report which CPUs share an L3 cache";
	rdt->nr_rmids = s.nr_rmids;
	return probe_cluster_mode(rdt, nodes);
}

/* Fewer counters than RMIDs, which software assigns (ABMC); whether they are enabled or not. */
static void probe_counters(struct mw_rdt *rdt)
{
	u32 eax, ebx, ecx, edx;

	if (!probe_is_amd() || cpuid_eax(LEAF_EXTENDED) < LEAF_QOS_AMD)
		return;
	cpuid_count(LEAF_QOS_AMD, 0, &eax, &ebx, &ecx, &edx);
	if (!(ebx & QOS_HAS_ABMC))
		return;
	cpuid_count(LEAF_QOS_AMD, QOS_TYPES, &eax, &ebx, &ecx, &edx);
	rdt->traffic_types[0] = ecx & TYPES_TOTAL;
	rdt->traffic_types[1] = ecx & TYPES_LOCAL;
	cpuid_count(LEAF_QOS_AMD, QOS_COUNTERS, &eax, &ebx, &ecx, &edx);
	rdt->counters = min_t(u32, (ebx & GENMASK(15, 0)) + 1, MW_RDT_COUNTERS);
}

/*
 * Others may use the register already, and a switch or an IPI writes it: interrupts are off, so
 * that what is written back is what this CPU holds.
 */
static bool probe_pqr_works(void)
{
	unsigned long flags;
	bool works;
	u64 pqr;

	local_irq_save(flags);
	works = !rdmsrq_safe(MW_MSR_PQR_ASSOC, &pqr) && !wrmsrq_safe(MW_MSR_PQR_ASSOC, pqr);
	local_irq_restore(flags);
	return works;
}

const char *mw_rdt_probe(struct mw_rdt *rdt)
{
	u32 eax, ebx, ecx, edx, max_rmid;
	const char *why;

	max_rmid = probe_max_rmid(&why);
	if (!max_rmid)
		return why;
	if (!probe_pqr_works())
		return "PQR_ASSOC cannot be read or written";
	if (probe_is_intel(SKYLAKE_X) && boot_cpu_data.x86_stepping <= 4)
		return "errata SKZ4, SKZ14 and SKZ15: this Skylake-X counts wrongly";

	cpuid_count(LEAF_RDT, 1, &eax, &ebx, &ecx, &edx);
	mw_rdt_format_init(&rdt->format, eax, ebx, edx, probe_is_amd());
	if (probe_is_intel(SKYLAKE_X) || probe_is_intel(BROADWELL_X))
		mw_rdt_format_correct(&rdt->format, max_rmid);
	probe_counters(rdt);
	rdt->backend = probe_is_amd() ? MEMWATCH_BACKEND_AMD_QOS : MEMWATCH_BACKEND_INTEL_RDT;
	return probe_survey_all(rdt);
}
