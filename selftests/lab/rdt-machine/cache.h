/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The caches: a small one for each CPU, which handles most accesses quickly, and a
 * last-level cache (LLC) for each domain. A line of the LLC has the RMID and the process
 * that caused its fill. It counts for both until it is evicted, including its write-back.
 */
#ifndef RDT_CACHE_H
#define RDT_CACHE_H

#include "machine.h"

/*
 * All in lines. Local ones have their address in a NUMA node of the domain itself. A hook of
 * the scheduler programs the RMID of the next process before that process is current. Of a
 * process, @switch_fills are the lines that were filled between these two moments, when it
 * was switched in or out: they have the RMID of one process and are accounted to another.
 */
struct traffic {
	uint64_t fills, writebacks;
	uint64_t local_fills, local_writebacks;
	uint64_t switch_fills;
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

/* The RMID and class, and the process, for which @cpu accesses memory from now on. */
void cache_set_rmid(unsigned int cpu, unsigned int rmid, unsigned int closid);
void cache_set_owner(unsigned int cpu, unsigned int owner);
/* The ways that CPUs of class @closid may fill. */
void cache_set_ways(unsigned int domain, unsigned int closid, uint32_t ways);

void cache_empty_l1(unsigned int cpu);
/* Write back what is dirty, and empty all caches. No CPU accesses memory meanwhile. */
void cache_flush(void);

/* LLC references and misses of @cpu, in user mode or in the kernel. */
uint64_t cache_references(unsigned int cpu, bool kernel);
uint64_t cache_misses(unsigned int cpu, bool kernel);

/* Nothing changes between these two, and the pointers are valid until the second. */
void cache_lock(void);
void cache_unlock(void);
const struct traffic *cache_of_domain(unsigned int domain);
const struct traffic *cache_of_rmid(unsigned int domain, unsigned int rmid);
const struct traffic *cache_of_owner(unsigned int domain, unsigned int owner);

/* A consistent copy for one RMID; takes the lock itself. */
struct traffic cache_read_rmid(unsigned int domain, unsigned int rmid);

/*
 * Called for each memory access of @cpu. @info is that of the plugin interface; @kernel is
 * NULL for code of user space.
 */
void cache_load(unsigned int cpu, uint32_t info, uint64_t address, void *kernel);
void cache_store(unsigned int cpu, uint32_t info, uint64_t address, void *kernel);

#endif
