/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The caches: a small one per CPU, which only keeps most accesses away, and a
 * last-level cache per domain. Each line of that knows the RMID and the owner
 * that brought it; both pay for it until it is gone, its write-back included.
 */
#ifndef RDT_CACHE_H
#define RDT_CACHE_H

#include "machine.h"

/* In lines, except where they are at home: only those of this domain. */
struct traffic {
	uint64_t fills, writebacks;
	uint64_t local_fills, local_writebacks;
	uint64_t lines; /* in the cache now */
};

static inline uint64_t total_bytes(const struct traffic *t)
{
	return (t->fills + t->writebacks) << LINE_SHIFT;
}

static inline uint64_t local_bytes(const struct traffic *t)
{
	return (t->local_fills + t->local_writebacks) << LINE_SHIFT;
}

void cache_init(void);

/* In whose name @cpu accesses memory from now on. */
void cache_set_rmid(unsigned int cpu, unsigned int rmid, unsigned int closid);
void cache_set_owner(unsigned int cpu, unsigned int owner);
/* The ways that @closid may fill. */
void cache_set_ways(unsigned int domain, unsigned int closid, uint32_t ways);

void cache_empty_l1(unsigned int cpu);

/* LLC references and misses of @cpu, by mode. */
uint64_t cache_references(unsigned int cpu, bool kernel);
uint64_t cache_misses(unsigned int cpu, bool kernel);

/* Between these nothing moves; the pointers are valid until then. */
void cache_lock(void);
void cache_unlock(void);
const struct traffic *cache_of_domain(unsigned int domain);
const struct traffic *cache_of_rmid(unsigned int domain, unsigned int rmid);
const struct traffic *cache_of_owner(unsigned int domain, unsigned int owner);

/* One RMID's figures, consistent in themselves. */
struct traffic cache_read_rmid(unsigned int domain, unsigned int rmid);

/* Called for each memory access of @cpu; @info is the plugin interface's. */
void cache_load(unsigned int cpu, uint32_t info, uint64_t address, void *kernel);
void cache_store(unsigned int cpu, uint32_t info, uint64_t address, void *kernel);

#endif
