/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * An architectural PMU of Intel, version 2: 4 general and 3 fixed counters of 48 bits, for
 * instructions, cycles, LLC references and LLC misses. They do not interrupt on overflow.
 */
#ifndef RDT_PMU_H
#define RDT_PMU_H

#include <x86-hooks.h>

#include "machine.h"

void pmu_cpuid(struct x86_hook_cpuid *c);
/* All registers are 0. No CPU executes code of the guest meanwhile. */
void pmu_reset(void);
enum x86_hook_answer pmu_rdmsr(unsigned int cpu, uint32_t msr, uint64_t *value);
enum x86_hook_answer pmu_wrmsr(unsigned int cpu, uint32_t msr, uint64_t value);
enum x86_hook_answer pmu_rdpmc(unsigned int cpu, uint32_t index, uint64_t *value);

#endif
