/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Finds out which process a CPU runs, from outside of the guest: its kernel stores the next
 * task in the per-CPU variable "current" at every switch. This does not depend on RMIDs, so
 * it can judge those who program them.
 */
#ifndef RDT_GUEST_H
#define RDT_GUEST_H

#include "machine.h"

enum {
	MAX_OWNERS = 65536,
	UNKNOWN_OWNER = 0,
	COMM_LEN = 16,
};

/* A process of the guest, as its kernel identifies it. */
struct owner {
	uint32_t tgid;
	uint64_t start;	     /* start_boottime of the group leader */
	char comm[COMM_LEN]; /* of the thread that was seen last */
};

/* Addresses of the guest's kernel, and offsets in its task_struct. */
struct guest_layout {
	uint64_t per_cpu_offset; /* address of the array of per-CPU areas */
	uint64_t current_task;	 /* address of the per-CPU variable */
	/* Offsets: */
	uint64_t tgid, group_leader, start_boottime, comm;
};

/* Follow switches from now on; false if the layout does not fit the guest's memory. */
bool guest_learn(const struct guest_layout *layout);

/* Owners have the numbers 1 to guest_owners() - 1; 0 is UNKNOWN_OWNER. */
unsigned int guest_owners(void);
struct owner guest_owner(unsigned int n);

/* By CPU: the address of its "current", 0 if it is not known. */
extern uint64_t guest_watch[MAX_CPUS];
void guest_switched(unsigned int cpu);

/* Called after each store of @cpu. */
static inline void guest_store(unsigned int cpu, uint64_t address)
{
	if (address == guest_watch[cpu])
		guest_switched(cpu);
}

#endif
