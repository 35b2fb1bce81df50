/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A plugin of the lab's QEMU that simulates a processor with monitoring of its last-level
 * caches. This header has the processor's properties, which the plugin's options set, and
 * what the core of the plugin offers to its other parts.
 */
#ifndef RDT_MACHINE_H
#define RDT_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	MAX_CPUS = 64,
	MAX_DOMAINS = 8,
	MAX_RMIDS = 1024,
	MAX_CLOSIDS = 16,
	LINE_SHIFT = 6,
	LLC_WAYS = 16,
};

struct machine {
	bool amd;
	unsigned int cpus;
	unsigned int domains; /* L3 caches */
	unsigned int snc;     /* NUMA nodes of each L3 cache (Sub-NUMA clustering) */
	unsigned int rmids[MAX_DOMAINS];
	unsigned int closids;  /* 0: no cache allocation */
	unsigned int llc_mib;  /* of each domain */
	uint64_t mem_mib;      /* of the guest */
	unsigned int scale;    /* bytes that a counter counts as one */
	unsigned int width;    /* bits of a counter */
	unsigned int overflow; /* 1: bit 61 is set when a counter has wrapped */
	unsigned int abmc;     /* assignable bandwidth counters of each domain; AMD only */
	uint64_t start;	       /* first value of a bandwidth counter */
	unsigned int delay;    /* ns of the guest that an access to EVTSEL or QM_CTR takes */
	char *dir;	       /* of the files that it writes */
};

extern struct machine machine;

/* CPUs are numbered domain by domain, node by node. */
static inline unsigned int node_of_cpu(unsigned int cpu)
{
	return cpu / (machine.cpus / (machine.domains * machine.snc));
}

static inline unsigned int domain_of_cpu(unsigned int cpu)
{
	return node_of_cpu(cpu) / machine.snc;
}

/* Start or stop watching memory accesses; takes effect when QEMU translates code again. */
void machine_track(bool on);
bool machine_tracking(void);

/*
 * When a CPU next writes IA32_MCG_CTL, reset all registers of RDT and of the PMU, and empty the
 * caches, as if the machine had been off.
 */
void machine_sleep(void);
/* How often that has happened. */
unsigned int machine_wakes(void);

/* Instructions that @cpu has executed, in user mode or in the kernel. */
uint64_t machine_instructions(unsigned int cpu, bool kernel);

/* Read guest memory at a virtual address of the running vCPU. */
bool machine_read(uint64_t address, void *to, unsigned int size);

#endif
