// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The processes of the guest, and which of them each CPU runs.
 */
#include "guest.h"

#include <pthread.h>
#include <string.h>

#include "cache.h"

uint64_t guest_watch[MAX_CPUS];

static struct guest_layout layout;

/* Protects all variables below. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct owner owners[MAX_OWNERS];
static unsigned int nowners = 1;
static uint32_t buckets[2 * MAX_OWNERS]; /* numbers of owners, 0 is free */

/* The number of the owner, a new one if it has none; UNKNOWN_OWNER if there are too many. */
static unsigned int number_of_owner(const struct owner *o)
{
	uint64_t hash = (o->start ^ o->tgid * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull >> 32;
	unsigned int n;

	for (;; hash++) {
		uint32_t *bucket = &buckets[hash % (2 * MAX_OWNERS)];

		n = *bucket;
		if (!n && nowners == MAX_OWNERS)
			return UNKNOWN_OWNER;
		if (!n)
			*bucket = n = nowners++;
		else if (owners[n].tgid != o->tgid || owners[n].start != o->start)
			continue;
		owners[n] = *o;
		return n;
	}
}

static unsigned int owner_of_task(uint64_t task)
{
	struct owner o = { 0 };
	unsigned int n;
	uint64_t leader;

	if (!machine_read(task + layout.tgid, &o.tgid, sizeof(o.tgid)) ||
	    !machine_read(task + layout.group_leader, &leader, sizeof(leader)) ||
	    !machine_read(leader + layout.start_boottime, &o.start, sizeof(o.start)) ||
	    !machine_read(task + layout.comm, o.comm, sizeof(o.comm)))
		return UNKNOWN_OWNER;
	/* Each CPU has an idle task of its own; all of them are one owner. */
	if (!o.tgid)
		o = (struct owner){ .comm = "idle" };
	pthread_mutex_lock(&lock);
	n = number_of_owner(&o);
	pthread_mutex_unlock(&lock);
	return n;
}

void guest_switched(unsigned int cpu)
{
	uint64_t task;

	if (machine_read(guest_watch[cpu], &task, sizeof(task)))
		cache_set_owner(cpu, owner_of_task(task));
}

bool guest_learn(const struct guest_layout *l)
{
	uint64_t area[MAX_CPUS];
	unsigned int cpu;

	layout = *l;
	if (!machine_read(l->per_cpu_offset, area, machine.cpus * sizeof(area[0])))
		return false;
	for (cpu = 0; cpu < machine.cpus; cpu++) {
		guest_watch[cpu] = area[cpu] + l->current_task;
		guest_switched(cpu);
	}
	return true;
}

unsigned int guest_owners(void)
{
	unsigned int n;

	pthread_mutex_lock(&lock);
	n = nowners;
	pthread_mutex_unlock(&lock);
	return n;
}

struct owner guest_owner(unsigned int n)
{
	struct owner o;

	pthread_mutex_lock(&lock);
	o = owners[n];
	pthread_mutex_unlock(&lock);
	return o;
}
