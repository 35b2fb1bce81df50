/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Assignable bandwidth counters of AMD (ABMC). While they are enabled, bandwidth is counted
 * only for the RMIDs to which software has assigned a counter. The caller has a lock.
 */
#ifndef RDT_ABMC_H
#define RDT_ABMC_H

#include <x86-hooks.h>

#include "machine.h"

enum {
	MSR_ABMC_CFG = 0xc00003fd,
	MSR_ABMC_DSC = 0xc00003fe,
	MSR_EXT_CFG = 0xc00003ff,
};

void abmc_cpuid(struct x86_hook_cpuid *c);
enum x86_hook_answer abmc_rdmsr(unsigned int cpu, uint32_t msr, uint64_t *value);
enum x86_hook_answer abmc_wrmsr(unsigned int cpu, uint32_t msr, uint64_t value);

bool abmc_enabled(unsigned int cpu);
/* The counters are not configured any more. The kernel has enabled them again. */
void abmc_reset(void);

/*
 * Read counter @id, or the first one that counts @rmid as total or local; in units, without
 * wraps. Return false if there is no such counter, or it is not enabled.
 */
bool abmc_read(unsigned int cpu, unsigned int id, uint64_t *units);
bool abmc_read_rmid(unsigned int cpu, unsigned int rmid, bool local, uint64_t *units);

#endif
