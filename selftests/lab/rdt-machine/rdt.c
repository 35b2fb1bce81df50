// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The simulated registers of RDT.
 */
#include "rdt.h"

#include <pthread.h>
#include <string.h>

#include "abmc.h"
#include "cache.h"
#include "clock.h"
#include "control.h"

enum {
	MSR_L3_MASK = 0xc90,
	MSR_SNC = 0xca0,
};

#define CTR_ERROR	(1ull << 63)
#define CTR_UNAVAILABLE (1ull << 62)
#define CTR_OVERFLOW	(1ull << 61)

/* One counter: an event of an RMID in a domain. */
struct counter {
	uint32_t errors, unavailable; /* how many of the next reads fail */
	uint32_t foreign;	      /* how many of the next selections are changed */
	bool restart;		      /* at the next read */
	uint64_t zero;		      /* subtracted: the value at the restart */
	uint64_t wraps;		      /* at the last read */
};

struct domain {
	uint64_t evtsel; /* AMD: shared by the CPUs of the domain */
	uint64_t snc;	 /* bit 0: the nodes do not share RMIDs */
	uint32_t ways[MAX_CLOSIDS];
	struct counter counter[MAX_RMIDS][EVENTS];
};

struct cpu {
	uint64_t evtsel;
	uint64_t pqr;
	struct rdt_use use;
};

/* Protects all variables below. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct domain domains[MAX_DOMAINS];
static struct cpu cpus[MAX_CPUS];

static bool msr_is_rdt(uint32_t msr)
{
	return msr >= MSR_EVTSEL && msr <= MSR_PQR;
}

void rdt_init(void)
{
	unsigned int d, i;

	for (d = 0; d < machine.domains; d++) {
		domains[d].snc = machine.snc > 1;
		for (i = 0; i < MAX_CLOSIDS; i++)
			domains[d].ways[i] = (1u << LLC_WAYS) - 1;
	}
}

/* --- CPUID --- */

static void cpuid_monitoring(unsigned int max, struct x86_hook_cpuid *c)
{
	c->eax = c->ebx = c->ecx = c->edx = 0;
	if (c->subleaf == 0) {
		c->ebx = max;
		c->edx = 1 << 1; /* the L3 cache is monitored */
	} else if (c->subleaf == 1) {
		/* Old processors of AMD report 0 and have 44 bits. */
		c->eax = machine.amd && machine.width == 44 ? 0 : machine.width - 24;
		c->eax |= machine.overflow << 8;
		c->ebx = machine.scale;
		c->ecx = max;
		c->edx = 1 << 0 | 1 << 1 | 1 << 2;
	}
}

static void cpuid_allocation(struct x86_hook_cpuid *c)
{
	c->eax = c->ebx = c->ecx = c->edx = 0;
	if (c->subleaf == 0) {
		c->ebx = 1 << 1; /* the L3 cache can be allocated */
	} else if (c->subleaf == 1) {
		c->eax = LLC_WAYS - 1;
		c->edx = machine.closids - 1;
	}
}

/* Replace the size of the L3 cache, and the number of CPUs that share one. */
static void cpuid_cache(struct x86_hook_cpuid *c)
{
	uint32_t sets = (machine.llc_mib << 20 >> LINE_SHIFT) / LLC_WAYS;
	uint32_t sharing = machine.cpus / machine.domains;

	if ((c->eax >> 5 & 7) != 3)
		return;
	/* The field counts APIC ids, of which a domain has a power of two. */
	while (sharing & (sharing - 1))
		sharing++;
	c->eax = (c->eax & ~(0xfffu << 14)) | (sharing - 1) << 14;
	c->ebx = (LLC_WAYS - 1) << 22 | ((1 << LINE_SHIFT) - 1);
	c->ecx = sets - 1;
}

void rdt_cpuid(unsigned int cpu, struct x86_hook_cpuid *c)
{
	abmc_cpuid(c);
	switch (c->leaf) {
	case 4:
	case 0x8000001d:
		cpuid_cache(c);
		break;
	case 7:
		if (c->subleaf)
			break;
		c->ebx |= 1 << 12;
		if (machine.closids)
			c->ebx |= 1 << 15;
		break;
	case 0xf:
		cpuid_monitoring(machine.rmids[domain_of_cpu(cpu)] - 1, c);
		break;
	case 0x10:
		if (machine.closids)
			cpuid_allocation(c);
		break;
	case 0x80000001:
		/* QEMU has leaf 0x8000001d but does not set the bit that announces it. */
		if (machine.amd)
			c->ecx |= 1 << 22;
		break;
	case 0x80000006:
		/* The size is in units of 512 KiB; 8 stands for 16 ways. */
		if (machine.amd)
			c->edx = machine.llc_mib * 2 << 18 | 8 << 12 | 1 << 8 | 1 << LINE_SHIFT;
		break;
	}
}

/* --- Counters --- */

/*
 * With Sub-NUMA clustering and shared RMIDs, each node of a cache has its own part of the
 * RMIDs, and PQR has the number within that part.
 */
static unsigned int physical_rmid(unsigned int cpu, unsigned int rmid)
{
	unsigned int d = domain_of_cpu(cpu);

	if (machine.snc == 1 || domains[d].snc & 1)
		return rmid;
	return rmid + node_of_cpu(cpu) % machine.snc * (machine.rmids[d] / machine.snc);
}

static uint64_t *evtsel_of_cpu(unsigned int cpu)
{
	return machine.amd ? &domains[domain_of_cpu(cpu)].evtsel : &cpus[cpu].evtsel;
}

/* In units of the counter; does not wrap. */
static uint64_t counter_units(unsigned int d, unsigned int rmid, unsigned int event)
{
	struct traffic t = cache_read_rmid(d, rmid);

	switch (event) {
	case OCCUPANCY:
		return (t.lines << LINE_SHIFT) / machine.scale;
	case TOTAL:
		return machine.start + total_bytes(&t) / machine.scale;
	default:
		return machine.start + local_bytes(&t) / machine.scale;
	}
}

/* Bit 31 of EVTSEL selects a counter by its number. */
static bool evtsel_valid(unsigned int cpu, uint64_t value)
{
	return !(value & ~(abmc_enabled(cpu) ? 0x3ff800000ffull : 0x3ff000000ffull));
}

/*
 * Where counters are assigned: the counter with the number in the place of the RMID, or the
 * one that counts bandwidth for the RMID. In units, without wraps; or the status.
 */
static uint64_t assigned_units(unsigned int cpu, uint64_t evtsel)
{
	unsigned int event = evtsel & 0xff, number = evtsel >> 32 & 0x3ff;
	uint64_t units;

	if (evtsel >> 31 & 1)
		return event == 1 && abmc_read(cpu, number, &units) ? units : CTR_ERROR;
	return abmc_read_rmid(cpu, number, event == LOCAL, &units) ? units : CTR_UNAVAILABLE;
}

/* False if none of @times is left; UINT32_MAX does not end. */
static bool take_one(uint32_t *times)
{
	if (!*times)
		return false;
	if (*times != UINT32_MAX)
		--*times;
	return true;
}

static uint64_t counter_read(unsigned int cpu)
{
	unsigned int d = domain_of_cpu(cpu);
	uint64_t evtsel = *evtsel_of_cpu(cpu);
	unsigned int event = evtsel & 0xff, rmid = evtsel >> 32 & 0x3ff;
	uint64_t value, flag = 0;
	struct counter *c;

	if (abmc_enabled(cpu) && (event != OCCUPANCY || evtsel >> 31 & 1)) {
		value = assigned_units(cpu, evtsel);
		return value & (CTR_ERROR | CTR_UNAVAILABLE)
			       ? value
			       : value & ((1ull << machine.width) - 1);
	}
	if (event < OCCUPANCY || event >= EVENTS || rmid >= machine.rmids[d])
		return CTR_ERROR;
	c = &domains[d].counter[rmid][event];
	value = counter_units(d, rmid, event);
	if (take_one(&c->errors))
		return CTR_ERROR;
	if (c->restart) {
		c->restart = false;
		c->zero = event == OCCUPANCY ? 0 : value;
		c->wraps = 0;
		return CTR_UNAVAILABLE;
	}
	if (take_one(&c->unavailable))
		return CTR_UNAVAILABLE;
	if (event == OCCUPANCY)
		return value;
	value -= c->zero;
	if (machine.overflow && value >> machine.width != c->wraps)
		flag = CTR_OVERFLOW;
	c->wraps = value >> machine.width;
	return (value & ((1ull << machine.width) - 1)) | flag;
}

/* Is this selection followed at once by one of other software, which selects RMID 0? */
static bool selection_is_foreign(unsigned int cpu, uint64_t evtsel)
{
	unsigned int event = evtsel & 0xff, rmid = evtsel >> 32 & 0x3ff;

	return !(evtsel >> 31 & 1) && event < EVENTS && rmid < MAX_RMIDS &&
	       take_one(&domains[domain_of_cpu(cpu)].counter[rmid][event].foreign);
}

/* The counter begins again at its first value. */
static void counter_reset(unsigned int d, unsigned int rmid, unsigned int event)
{
	struct counter *c = &domains[d].counter[rmid][event];

	c->zero = event == OCCUPANCY ? 0 : counter_units(d, rmid, event) - machine.start;
	c->wraps = 0;
}

void rdt_reset(void)
{
	unsigned int d, i, event;

	pthread_mutex_lock(&lock);
	for (d = 0; d < machine.domains; d++) {
		domains[d].evtsel = 0;
		for (i = 0; i < MAX_CLOSIDS; i++) {
			domains[d].ways[i] = (1u << LLC_WAYS) - 1;
			cache_set_ways(d, i, domains[d].ways[i]);
		}
		for (i = 0; i < machine.rmids[d]; i++)
			for (event = OCCUPANCY; event < EVENTS; event++)
				counter_reset(d, i, event);
	}
	for (i = 0; i < machine.cpus; i++) {
		cpus[i].evtsel = cpus[i].pqr = 0;
		cpus[i].use.rmid = cpus[i].use.closid = 0;
		cache_set_rmid(i, physical_rmid(i, 0), 0);
	}
	abmc_reset();
	pthread_mutex_unlock(&lock);
}

/* --- MSRs --- */

static bool pqr_valid(unsigned int cpu, uint64_t value)
{
	unsigned int rmid = value & 0x3ff, closid = value >> 32;
	unsigned int closids = machine.closids ? machine.closids : 1;

	return !(value & 0xfffffc00) && closid < closids &&
	       physical_rmid(cpu, rmid) < machine.rmids[domain_of_cpu(cpu)];
}

static bool pqr_write(unsigned int cpu, uint64_t value)
{
	struct cpu *c = &cpus[cpu];

	if (!pqr_valid(cpu, value))
		return false;
	c->pqr = value;
	c->use.rmid = value & 0x3ff;
	c->use.closid = value >> 32;
	cache_set_rmid(cpu, physical_rmid(cpu, c->use.rmid), c->use.closid);
	if (c->use.rmid)
		machine_track(true);
	return true;
}

bool rdt_set_pqr(unsigned int cpu, uint64_t value)
{
	bool ok;

	pthread_mutex_lock(&lock);
	ok = pqr_write(cpu, value);
	pthread_mutex_unlock(&lock);
	return ok;
}

/* The bits of a mask of ways must be contiguous. */
static bool ways_write(unsigned int cpu, unsigned int closid, uint64_t ways)
{
	unsigned int d = domain_of_cpu(cpu);
	uint64_t run = ways + (ways & -ways);

	if (!ways || ways >> LLC_WAYS || run & (run - 1))
		return false;
	domains[d].ways[closid] = ways;
	cache_set_ways(d, closid, ways);
	return true;
}

static void snc_write(unsigned int cpu, uint64_t value)
{
	unsigned int d = domain_of_cpu(cpu), i;

	domains[d].snc = value;
	for (i = 0; i < machine.cpus; i++)
		if (domain_of_cpu(i) == d)
			cache_set_rmid(i, physical_rmid(i, cpus[i].use.rmid), cpus[i].use.closid);
}

static enum x86_hook_answer msr_write(unsigned int cpu, uint32_t msr, uint64_t value)
{
	if (msr >= MSR_L3_MASK && msr < MSR_L3_MASK + machine.closids)
		return ways_write(cpu, msr - MSR_L3_MASK, value) ? X86_HOOK_DONE : X86_HOOK_FAULT;
	switch (msr) {
	case MSR_EVTSEL:
		if (!evtsel_valid(cpu, value))
			return X86_HOOK_FAULT;
		*evtsel_of_cpu(cpu) = selection_is_foreign(cpu, value) ? value & 0xff : value;
		machine_track(true);
		return X86_HOOK_DONE;
	case MSR_CTR:
		return X86_HOOK_FAULT;
	case MSR_PQR:
		return pqr_write(cpu, value) ? X86_HOOK_DONE : X86_HOOK_FAULT;
	case MSR_SNC:
		if (machine.snc == 1)
			return X86_HOOK_PASS;
		snc_write(cpu, value);
		return X86_HOOK_DONE;
	}
	return abmc_wrmsr(cpu, msr, value);
}

static enum x86_hook_answer msr_read(unsigned int cpu, uint32_t msr, uint64_t *value)
{
	unsigned int d = domain_of_cpu(cpu);

	if (msr >= MSR_L3_MASK && msr < MSR_L3_MASK + machine.closids) {
		*value = domains[d].ways[msr - MSR_L3_MASK];
		return X86_HOOK_DONE;
	}
	switch (msr) {
	case MSR_EVTSEL:
		*value = *evtsel_of_cpu(cpu);
		return X86_HOOK_DONE;
	case MSR_CTR:
		*value = counter_read(cpu);
		return X86_HOOK_DONE;
	case MSR_PQR:
		*value = cpus[cpu].pqr;
		return X86_HOOK_DONE;
	case MSR_SNC:
		*value = domains[d].snc;
		return machine.snc > 1 ? X86_HOOK_DONE : X86_HOOK_PASS;
	}
	return abmc_rdmsr(cpu, msr, value);
}

/* Only the CPU that accesses the register waits. */
static void msr_wait(uint32_t msr)
{
	if (machine.delay && (msr == MSR_EVTSEL || msr == MSR_CTR))
		clock_wait(machine.delay);
}

enum x86_hook_answer rdt_rdmsr(unsigned int cpu, uint32_t msr, uint64_t *value)
{
	enum x86_hook_answer answer;

	msr_wait(msr);
	pthread_mutex_lock(&lock);
	answer = msr_read(cpu, msr, value);
	if (msr_is_rdt(msr)) {
		cpus[cpu].use.reads[msr - MSR_EVTSEL]++;
		control_log(cpu, 'r', msr, *value, answer == X86_HOOK_FAULT);
	}
	pthread_mutex_unlock(&lock);
	return answer;
}

enum x86_hook_answer rdt_wrmsr(unsigned int cpu, uint32_t msr, uint64_t value)
{
	enum x86_hook_answer answer;

	msr_wait(msr);
	pthread_mutex_lock(&lock);
	answer = msr_write(cpu, msr, value);
	if (msr_is_rdt(msr)) {
		cpus[cpu].use.writes[msr - MSR_EVTSEL]++;
		control_log(cpu, 'w', msr, value, answer == X86_HOOK_FAULT);
	}
	if (msr == MSR_ABMC_CFG)
		control_log(cpu, 'w', msr, value, answer == X86_HOOK_FAULT);
	cpus[cpu].use.faults += answer == X86_HOOK_FAULT;
	pthread_mutex_unlock(&lock);
	return answer;
}

struct rdt_use rdt_use(unsigned int cpu)
{
	struct rdt_use use;

	pthread_mutex_lock(&lock);
	use = cpus[cpu].use;
	pthread_mutex_unlock(&lock);
	return use;
}

/* --- Injected faults --- */

static void counter_arm(struct counter *c, enum rdt_fault fault, uint32_t times)
{
	switch (fault) {
	case FAULT_ERROR:
		c->errors = times;
		break;
	case FAULT_UNAVAILABLE:
		c->unavailable = times;
		break;
	case FAULT_RESTART:
		c->restart = true;
		break;
	case FAULT_FOREIGN:
		c->foreign = times;
		break;
	}
}

bool rdt_inject(enum rdt_fault fault, int domain, int rmid, int event, uint32_t times)
{
	int d, r, e;

	if (domain >= (int)machine.domains || rmid >= MAX_RMIDS || event >= EVENTS)
		return false;
	pthread_mutex_lock(&lock);
	for (d = 0; d < (int)machine.domains; d++)
		for (r = 0; r < (int)machine.rmids[d]; r++)
			for (e = OCCUPANCY; e < EVENTS; e++)
				if ((domain == ANY || domain == d) && (rmid == ANY || rmid == r) &&
				    (event == ANY || event == e))
					counter_arm(&domains[d].counter[r][e], fault, times);
	pthread_mutex_unlock(&lock);
	return true;
}

void rdt_clear(void)
{
	unsigned int d, r, e;

	pthread_mutex_lock(&lock);
	for (d = 0; d < machine.domains; d++)
		for (r = 0; r < MAX_RMIDS; r++)
			for (e = 0; e < EVENTS; e++) {
				struct counter *c = &domains[d].counter[r][e];

				c->errors = c->unavailable = c->foreign = 0;
				c->restart = false;
			}
	pthread_mutex_unlock(&lock);
}
