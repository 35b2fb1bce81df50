/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which process a CPU runs, seen from outside: the guest kernel stores the
 * next task in its per-CPU "current" at every switch. No RMID is involved, so
 * this is the judge of those who program them.
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
	char comm[COMM_LEN]; /* when last seen, of any of its threads */
};

/* Where the guest's kernel keeps things; offsets are into task_struct. */
struct guest_layout {
	uint64_t per_cpu_offset; /* array of the per-CPU areas' addresses */
	uint64_t current_task;	 /* per-CPU symbol */
	uint64_t tgid, group_leader, start_boottime, comm;
};

/* From now on; false if the guest's memory is not like that. */
bool guest_learn(const struct guest_layout *layout);

/* Owners are numbered from 1 to guest_owners() - 1; 0 is "not known". */
unsigned int guest_owners(void);
struct owner guest_owner(unsigned int n);

extern uint64_t guest_watch[MAX_CPUS];
void guest_switched(unsigned int cpu);

/* Called after each store of @cpu. */
static inline void guest_store(unsigned int cpu, uint64_t address)
{
	if (address == guest_watch[cpu])
		guest_switched(cpu);
}

#endif
