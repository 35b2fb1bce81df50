/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An architectural PMU, version 2, for Intel: 4 general and 3 fixed counters
 * of 48 bits, for instructions, cycles, LLC references and LLC misses. They
 * count and stop; they never interrupt.
 */
#ifndef RDT_PMU_H
#define RDT_PMU_H

#include <x86-hooks.h>

#include "machine.h"

void pmu_cpuid(struct x86_hook_cpuid *c);
enum x86_hook_answer pmu_rdmsr(unsigned int cpu, uint32_t msr, uint64_t *value);
enum x86_hook_answer pmu_wrmsr(unsigned int cpu, uint32_t msr, uint64_t value);
enum x86_hook_answer pmu_rdpmc(unsigned int cpu, uint32_t index, uint64_t *value);

#endif
