/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The registers of monitoring (Intel RDT, or AMD QoS, which differs little) and of cache
 * allocation, their CPUID leaves, and the injection of faults.
 */
#ifndef RDT_RDT_H
#define RDT_RDT_H

#include <x86-hooks.h>

#include "machine.h"

enum {
	MSR_EVTSEL = 0xc8d,
	MSR_CTR = 0xc8e,
	MSR_PQR = 0xc8f,
};

enum rdt_event { OCCUPANCY = 1, TOTAL, LOCAL, EVENTS };

enum { ANY = -1 };

enum rdt_fault {
	FAULT_ERROR,	   /* bit 63 */
	FAULT_UNAVAILABLE, /* bit 62 */
	FAULT_RESTART,	   /* bit 62 once, then counting from 0 */
	FAULT_FOREIGN,	   /* EVTSEL is changed after it was written, before the read */
};

/* How often a CPU has accessed its registers, by index of register 0xC8D + index. */
struct rdt_use {
	uint64_t reads[3], writes[3];
	uint64_t faults;	   /* answered with #GP */
	unsigned int rmid, closid; /* the current ones in PQR_ASSOC */
};

void rdt_init(void);
/* All registers have the values that they have when the machine starts. */
void rdt_reset(void);
void rdt_cpuid(unsigned int cpu, struct x86_hook_cpuid *c);
enum x86_hook_answer rdt_rdmsr(unsigned int cpu, uint32_t msr, uint64_t *value);
enum x86_hook_answer rdt_wrmsr(unsigned int cpu, uint32_t msr, uint64_t value);

struct rdt_use rdt_use(unsigned int cpu);

/* Let the next @times reads fail. @domain, @rmid and @event may be ANY. */
bool rdt_inject(enum rdt_fault fault, int domain, int rmid, int event, uint32_t times);
void rdt_clear(void);
/* Write PQR_ASSOC of @cpu as other software would; false if the value is not valid. */
bool rdt_set_pqr(unsigned int cpu, uint64_t value);

#endif
