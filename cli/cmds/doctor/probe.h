/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Probes: they execute CPUID, load a BPF program, open a counter and so on, to find out
 * what this machine supports. With --root, the results come from the file "probes" in
 * that directory instead, which has lines "NAME NUMBER...", so that a test can simulate
 * any machine.
 */
#ifndef MW_PROBE_H
#define MW_PROBE_H

#include "common/cmd.h"

struct mw_cpuid {
	uint32_t eax, ebx, ecx, edx;
};

/*
 * Executes CPUID. The caller must check the highest leaf first: for a higher one, Intel
 * CPUs return the data of their highest leaf.
 */
void mw_probe_cpuid(const struct mw_cli *cli, uint32_t leaf, uint32_t subleaf,
		    struct mw_cpuid *ret);

/*
 * The first loads a BPF program of two instructions, the second also attaches it to a raw
 * tracepoint; both undo it at once. They return 0 or a negative errno.
 */
int mw_probe_bpf_load(const struct mw_cli *cli);
int mw_probe_bpf_attach(const struct mw_cli *cli);

/*
 * Opens a counter (&enum memwatch_counter) on every CPU, as the collector does. Returns
 * 0 or a negative errno; @cpus is the number of CPUs on which it worked.
 */
int mw_probe_counter(const struct mw_cli *cli, unsigned int counter, int *cpus);

/*
 * Runs all counters together for a few milliseconds. Returns the smallest share of
 * the time for which one was counting, in percent, or a negative errno.
 */
int mw_probe_counter_share(const struct mw_cli *cli);

/* Reads IA32_PQR_ASSOC of a CPU from /dev/cpu/N/msr. Returns 0 or a negative errno. */
int mw_probe_pqr(const struct mw_cli *cli, int cpu, uint64_t *ret);

/* The soft limit of locked memory in bytes; UINT64_MAX: no limit. */
uint64_t mw_probe_memlock(const struct mw_cli *cli);

/* The number of online CPUs. */
int mw_probe_cpus(const struct mw_cli *cli);

#endif
