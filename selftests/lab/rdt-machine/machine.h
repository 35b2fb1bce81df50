/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A processor with monitoring of its last-level caches, as a plugin of the
 * lab's QEMU: what the options made of it, and which CPU belongs where.
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
	unsigned int snc;     /* NUMA nodes of each */
	unsigned int rmids[MAX_DOMAINS];
	unsigned int closids;  /* 0: no cache allocation */
	unsigned int llc_mib;  /* of each domain */
	uint64_t mem_mib;      /* of the guest */
	unsigned int scale;    /* bytes that a counter counts as one */
	unsigned int width;    /* bits of a counter */
	unsigned int overflow; /* 1: bit 61 tells of a wrap */
	uint64_t start;	       /* first value of a bandwidth counter */
	char *dir;	       /* where the truth goes */
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

/* Watch memory accesses or do not; takes effect a moment later. */
void machine_track(bool on);
bool machine_tracking(void);

/* What @cpu executed, [0] in user mode, [1] in the kernel. */
uint64_t machine_instructions(unsigned int cpu, bool kernel);

/* Guest memory as the running vCPU sees it. */
bool machine_read(uint64_t address, void *to, unsigned int size);

#endif
