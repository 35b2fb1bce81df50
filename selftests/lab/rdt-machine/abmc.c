// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The simulated registers of ABMC.
 */
#include "abmc.h"

#include <string.h>

#include "cache.h"

enum { MAX_COUNTERS = 32 };

#define CFG_CONFIGURE (1ull << 63) /* in DSC: the configuration is not valid */
#define CFG_ENABLE    (1ull << 62)
#define CFG_CLASS     (1ull << 47)
#define CFG_RESERVED  (0x1ffull << 53 | 7ull << 44)

/* Types of transactions: all; and those that resctrl counts as local. */
#define TYPES_ALL   0x7f
#define TYPES_LOCAL 0x15

struct assigned {
	uint64_t config;
	uint64_t zero; /* what the RMID had moved when the counter was configured */
};

static struct assigned counters[MAX_DOMAINS][MAX_COUNTERS];

/* Each CPU has registers of its own. */
static uint64_t cfg[MAX_CPUS], ext_cfg[MAX_CPUS];

void abmc_cpuid(struct x86_hook_cpuid *c)
{
	if (!machine.abmc)
		return;
	if (c->leaf == 0x80000000)
		c->eax = 0x80000020;
	if (c->leaf != 0x80000020)
		return;
	c->eax = c->ebx = c->ecx = c->edx = 0;
	if (c->subleaf == 0)
		c->ebx = 1 << 5;
	else if (c->subleaf == 3)
		c->ecx = TYPES_ALL;
	else if (c->subleaf == 5)
		c->ebx = machine.abmc - 1;
}

bool abmc_enabled(unsigned int cpu)
{
	return ext_cfg[cpu] & 1;
}

void abmc_reset(void)
{
	memset(counters, 0, sizeof(counters));
	memset(cfg, 0, sizeof(cfg));
}

static unsigned int config_rmid(uint64_t config)
{
	return config >> 32 & 0xfff;
}

static uint64_t config_units(unsigned int domain, uint64_t config)
{
	struct traffic t = cache_read_rmid(domain, config_rmid(config));

	/* The caches distinguish addresses, not reads from writes. */
	return (config & TYPES_ALL & ~TYPES_LOCAL ? total_bytes(&t) : local_bytes(&t)) /
	       machine.scale;
}

bool abmc_read(unsigned int cpu, unsigned int id, uint64_t *units)
{
	unsigned int d = domain_of_cpu(cpu);
	struct assigned *a = &counters[d][id % MAX_COUNTERS];

	if (id >= machine.abmc || a->config & CFG_CONFIGURE || !(a->config & CFG_ENABLE))
		return false;
	*units = config_units(d, a->config) - a->zero;
	return true;
}

bool abmc_read_rmid(unsigned int cpu, unsigned int rmid, bool local, uint64_t *units)
{
	unsigned int d = domain_of_cpu(cpu), id;

	for (id = 0; id < machine.abmc; id++) {
		uint64_t config = counters[d][id].config;

		if (config & CFG_ENABLE && config_rmid(config) == rmid &&
		    (config & TYPES_ALL) == (local ? TYPES_LOCAL : TYPES_ALL))
			return abmc_read(cpu, id, units);
	}
	return false;
}

static void configure(unsigned int cpu, uint64_t value)
{
	unsigned int d = domain_of_cpu(cpu), id = value >> 48 & 0x1f;
	struct assigned *a = &counters[d][id];

	a->config = value & ~CFG_CONFIGURE;
	if (id >= machine.abmc || value & CFG_CLASS || config_rmid(value) >= machine.rmids[d])
		a->config |= CFG_CONFIGURE;
	else
		a->zero = config_units(d, a->config);
}

enum x86_hook_answer abmc_wrmsr(unsigned int cpu, uint32_t msr, uint64_t value)
{
	if (!machine.abmc)
		return X86_HOOK_PASS;
	switch (msr) {
	case MSR_EXT_CFG:
		if (value >> 2)
			return X86_HOOK_FAULT;
		if ((ext_cfg[cpu] ^ value) & 1)
			memset(counters[domain_of_cpu(cpu)], 0, sizeof(counters[0]));
		ext_cfg[cpu] = value;
		return X86_HOOK_DONE;
	case MSR_ABMC_CFG:
		if (!abmc_enabled(cpu) || value & CFG_RESERVED || (uint32_t)value & ~TYPES_ALL)
			return X86_HOOK_FAULT;
		cfg[cpu] = value;
		if (value & CFG_CONFIGURE)
			configure(cpu, value);
		return X86_HOOK_DONE;
	case MSR_ABMC_DSC:
		return X86_HOOK_FAULT;
	}
	return X86_HOOK_PASS;
}

enum x86_hook_answer abmc_rdmsr(unsigned int cpu, uint32_t msr, uint64_t *value)
{
	unsigned int id = cfg[cpu] >> 48 & 0x1f;

	if (!machine.abmc)
		return X86_HOOK_PASS;
	switch (msr) {
	case MSR_EXT_CFG:
		*value = ext_cfg[cpu];
		return X86_HOOK_DONE;
	case MSR_ABMC_CFG:
		*value = cfg[cpu];
		return abmc_enabled(cpu) ? X86_HOOK_DONE : X86_HOOK_FAULT;
	case MSR_ABMC_DSC:
		*value = counters[domain_of_cpu(cpu)][id].config;
		return abmc_enabled(cpu) ? X86_HOOK_DONE : X86_HOOK_FAULT;
	}
	return X86_HOOK_PASS;
}
