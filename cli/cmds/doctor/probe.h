/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Questions that only the machine itself can answer: they are asked for real,
 * by trying. Below --root the answers come from the file "probes" there, lines
 * of "NAME NUMBER…", so that a test can play any machine.
 */
#ifndef MW_PROBE_H
#define MW_PROBE_H

#include "common/cmd.h"

struct mw_cpuid {
	uint32_t eax, ebx, ecx, edx;
};

/*
 * CPUID. Does not look at the highest leaf: beyond it the CPU answers with
 * somebody else's data, which is for the caller to know.
 */
void mw_probe_cpuid(const struct mw_cli *cli, uint32_t leaf, uint32_t subleaf,
		    struct mw_cpuid *ret);

/* Loads a BPF program of two instructions and attaches it to a tracepoint. 0 or -errno. */
int mw_probe_bpf_load(const struct mw_cli *cli);
int mw_probe_bpf_attach(const struct mw_cli *cli);

/*
 * Opens a counter (&enum memwatch_counter) on every CPU, as the collector does. Returns
 * 0 or a negative errno; @cpus is the number of CPUs on which it worked.
 */
int mw_probe_counter(const struct mw_cli *cli, unsigned int counter, int *cpus);

/*
 * Runs all counters together for a few milliseconds. Returns the smallest share of
 * the time for which one was on the hardware, in percent, or -errno.
 */
int mw_probe_counter_share(const struct mw_cli *cli);

/* IA32_PQR_ASSOC of a CPU through /dev/cpu/N/msr: 0 or -errno. */
int mw_probe_pqr(const struct mw_cli *cli, int cpu, uint64_t *ret);

/* Soft limit of locked memory in bytes; UINT64_MAX: none. */
uint64_t mw_probe_memlock(const struct mw_cli *cli);

/* Online CPUs. */
int mw_probe_cpus(const struct mw_cli *cli);

#endif
