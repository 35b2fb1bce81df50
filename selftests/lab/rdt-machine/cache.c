// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The simulated caches.
 */
#include "cache.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <qemu-plugin.h>

#include "guest.h"

enum {
	L1_LINES = 512, /* 32 KiB, direct-mapped */
	NO_WAY = -1,
};

struct line {
	uint32_t owner;
	uint32_t used; /* value of llc.clock at the last access */
	uint16_t rmid;
	bool dirty;
	bool local;
};

/* The tags are an array of their own because a search reads only them. */
struct set {
	uint64_t tag[LLC_WAYS]; /* line number + 1, 0 is empty */
	struct line line[LLC_WAYS];
};

struct llc {
	pthread_mutex_t lock; /* protects all members below */
	struct set *sets;
	uint64_t nsets;
	uint32_t clock; /* counts accesses */
	uint32_t ways[MAX_CLOSIDS];
	struct traffic all;
	struct traffic rmid[MAX_RMIDS];
	struct traffic *owner; /* MAX_OWNERS entries */
};

/* Written only by the thread of its vCPU, except @owner. */
struct cpu {
	/* by slot: virtual line number * 2, plus 1 if the line was written */
	uint64_t l1[L1_LINES];
	uint64_t references[2];
	uint64_t misses[2];
	unsigned int rmid, closid, owner;
	/* fills since the RMID was programmed, until the next process is current */
	bool switching;
	uint64_t switch_fills;
} __attribute__((aligned(64)));

static struct llc llcs[MAX_DOMAINS];
static struct cpu cpus[MAX_CPUS];
static unsigned int domain_of[MAX_CPUS];

void cache_init(void)
{
	unsigned int d, i;

	for (d = 0; d < machine.domains; d++) {
		struct llc *llc = &llcs[d];

		pthread_mutex_init(&llc->lock, NULL);
		llc->nsets = ((uint64_t)machine.llc_mib << 20 >> LINE_SHIFT) / LLC_WAYS;
		llc->sets = calloc(llc->nsets, sizeof(*llc->sets));
		llc->owner = calloc(MAX_OWNERS, sizeof(*llc->owner));
		if (!llc->sets || !llc->owner)
			abort();
		for (i = 0; i < MAX_CLOSIDS; i++)
			llc->ways[i] = (1u << LLC_WAYS) - 1;
	}
	for (i = 0; i < machine.cpus; i++) {
		domain_of[i] = domain_of_cpu(i);
		cache_empty_l1(i);
	}
}

void cache_set_rmid(unsigned int cpu, unsigned int rmid, unsigned int closid)
{
	struct cpu *c = &cpus[cpu];

	c->switching = c->rmid != rmid;
	c->switch_fills = 0;
	c->closid = closid;
	c->rmid = rmid;
}

void cache_set_owner(unsigned int cpu, unsigned int owner)
{
	struct llc *llc = &llcs[domain_of[cpu]];
	struct cpu *c = &cpus[cpu];

	if (c->switching && c->switch_fills) {
		pthread_mutex_lock(&llc->lock);
		llc->owner[c->owner].switch_fills += c->switch_fills;
		llc->owner[owner].switch_fills += c->switch_fills;
		pthread_mutex_unlock(&llc->lock);
	}
	c->switching = false;
	c->owner = owner;
}

void cache_set_ways(unsigned int domain, unsigned int closid, uint32_t ways)
{
	pthread_mutex_lock(&llcs[domain].lock);
	llcs[domain].ways[closid] = ways;
	pthread_mutex_unlock(&llcs[domain].lock);
}

void cache_empty_l1(unsigned int cpu)
{
	memset(cpus[cpu].l1, 0xff, sizeof(cpus[cpu].l1));
}

uint64_t cache_references(unsigned int cpu, bool kernel)
{
	return cpus[cpu].references[kernel];
}

uint64_t cache_misses(unsigned int cpu, bool kernel)
{
	return cpus[cpu].misses[kernel];
}

void cache_lock(void)
{
	unsigned int d;

	for (d = 0; d < machine.domains; d++)
		pthread_mutex_lock(&llcs[d].lock);
}

void cache_unlock(void)
{
	unsigned int d;

	for (d = machine.domains; d--;)
		pthread_mutex_unlock(&llcs[d].lock);
}

const struct traffic *cache_of_domain(unsigned int domain)
{
	return &llcs[domain].all;
}

const struct traffic *cache_of_rmid(unsigned int domain, unsigned int rmid)
{
	return &llcs[domain].rmid[rmid];
}

const struct traffic *cache_of_owner(unsigned int domain, unsigned int owner)
{
	return &llcs[domain].owner[owner];
}

struct traffic cache_read_rmid(unsigned int domain, unsigned int rmid)
{
	struct llc *llc = &llcs[domain];
	struct traffic t;

	pthread_mutex_lock(&llc->lock);
	t = llc->rmid[rmid];
	pthread_mutex_unlock(&llc->lock);
	return t;
}

/*
 * The domain whose NUMA node has @address. The nodes have equal parts of the memory, in
 * order. Memory that does not fit below the PCI hole of a q35 machine continues at 4 GiB.
 */
static unsigned int domain_of_address(uint64_t address)
{
	uint64_t memory = machine.mem_mib << 20;
	uint64_t low = memory >= 0xb0000000 ? 0x80000000 : memory;
	uint64_t part = memory / (machine.domains * machine.snc);
	uint64_t at = address >> 32 ? address - (1ull << 32) + low : address;
	uint64_t node = at / part;

	/* The firmware below 4 GiB is in no node. */
	return node / machine.snc < machine.domains ? node / machine.snc : 0;
}

/* --- The last-level cache; the caller holds its lock --- */

static int set_find(const struct set *set, uint64_t tag)
{
	int way;

	for (way = 0; way < LLC_WAYS; way++)
		if (set->tag[way] == tag)
			return way;
	return NO_WAY;
}

static void line_account(struct llc *llc, const struct line *l, bool fill, int lines)
{
	struct traffic *all[] = { &llc->all, &llc->rmid[l->rmid], &llc->owner[l->owner] };
	unsigned int i;

	for (i = 0; i < 3; i++) {
		all[i]->fills += fill;
		all[i]->local_fills += fill && l->local;
		if (lines < 0 && l->dirty) {
			all[i]->writebacks++;
			all[i]->local_writebacks += l->local;
		}
		all[i]->lines += lines;
	}
}

static void line_evict(struct llc *llc, struct set *set, int way)
{
	if (set->tag[way])
		line_account(llc, &set->line[way], false, -1);
	set->tag[way] = 0;
}

void cache_flush(void)
{
	unsigned int d, i;
	int way;

	for (d = 0; d < machine.domains; d++) {
		struct llc *llc = &llcs[d];

		pthread_mutex_lock(&llc->lock);
		for (i = 0; i < llc->nsets; i++)
			for (way = 0; way < LLC_WAYS; way++)
				line_evict(llc, &llc->sets[i], way);
		pthread_mutex_unlock(&llc->lock);
	}
	for (i = 0; i < machine.cpus; i++)
		cache_empty_l1(i);
}

/* An empty way among @ways, else the least recently used one. */
static int set_victim(const struct llc *llc, const struct set *set, uint32_t ways)
{
	int way, best = NO_WAY;

	for (way = 0; way < LLC_WAYS; way++) {
		if (!(ways & 1u << way))
			continue;
		if (!set->tag[way])
			return way;
		if (best == NO_WAY ||
		    llc->clock - set->line[way].used > llc->clock - set->line[best].used)
			best = way;
	}
	return best;
}

/* Returns whether it was a miss. @first: this access makes the line dirty. */
static bool llc_access(struct llc *llc, const struct cpu *c, uint64_t address, bool store,
		       bool *first)
{
	uint64_t number = address >> LINE_SHIFT;
	struct set *set = &llc->sets[number % llc->nsets];
	int way = set_find(set, number + 1);
	bool miss = way == NO_WAY;

	llc->clock++;
	if (miss) {
		way = set_victim(llc, set, llc->ways[c->closid]);
		line_evict(llc, set, way);
		set->tag[way] = number + 1;
		set->line[way] = (struct line){
			.owner = c->owner,
			.rmid = c->rmid,
			.local = domain_of_address(address) == (unsigned int)(llc - llcs),
		};
		line_account(llc, &set->line[way], true, 1);
	}
	set->line[way].used = llc->clock;
	*first = store && !set->line[way].dirty;
	set->line[way].dirty |= store;
	return miss;
}

/* --- The cache of a CPU --- */

/* A line that was written must have no copy in the other domains. */
static void line_drop_elsewhere(unsigned int domain, uint64_t address)
{
	uint64_t number = address >> LINE_SHIFT;
	unsigned int d;

	for (d = 0; d < machine.domains; d++) {
		struct llc *llc = &llcs[d];
		struct set *set = &llc->sets[number % llc->nsets];
		int way;

		if (d == domain)
			continue;
		pthread_mutex_lock(&llc->lock);
		way = set_find(set, number + 1);
		if (way != NO_WAY)
			line_evict(llc, set, way);
		pthread_mutex_unlock(&llc->lock);
	}
}

static void l1_miss(unsigned int cpu, uint32_t info, uint64_t address, bool store, bool kernel)
{
	struct qemu_plugin_hwaddr *where = qemu_plugin_get_hwaddr(info, address);
	struct llc *llc = &llcs[domain_of[cpu]];
	struct cpu *c = &cpus[cpu];
	uint64_t physical;
	bool miss, first;

	if (!where || qemu_plugin_hwaddr_is_io(where))
		return;
	physical = qemu_plugin_hwaddr_phys_addr(where);
	pthread_mutex_lock(&llc->lock);
	miss = llc_access(llc, c, physical, store, &first);
	pthread_mutex_unlock(&llc->lock);
	c->references[kernel]++;
	c->misses[kernel] += miss;
	c->switch_fills += miss;
	if (first && machine.domains > 1)
		line_drop_elsewhere(domain_of[cpu], physical);
}

static inline void l1_access(unsigned int cpu, uint32_t info, uint64_t address, bool store,
			     bool kernel)
{
	uint64_t number = address >> LINE_SHIFT;
	uint64_t *slot = &cpus[cpu].l1[number % L1_LINES];
	bool here = *slot >> 1 == (number & ~0ull >> 1);

	if (here && (!store || *slot & 1))
		return;
	*slot = number << 1 | store;
	l1_miss(cpu, info, address, store, kernel);
}

static inline void l1_access_all(unsigned int cpu, uint32_t info, uint64_t address, bool store,
				 bool kernel)
{
	const unsigned int line = 1u << LINE_SHIFT;
	unsigned int at = address % line;

	l1_access(cpu, info, address, store, kernel);
	/* Ask for the size only near the end of a line: no access is wider than 16 bytes. */
	if (at > line - 16 && at + (1u << qemu_plugin_mem_size_shift(info)) > line)
		l1_access(cpu, info, (address | (line - 1)) + 1, store, kernel);
}

void cache_load(unsigned int cpu, uint32_t info, uint64_t address, void *kernel)
{
	l1_access_all(cpu, info, address, false, kernel != NULL);
}

void cache_store(unsigned int cpu, uint32_t info, uint64_t address, void *kernel)
{
	l1_access_all(cpu, info, address, true, kernel != NULL);
	guest_store(cpu, address);
}
