/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The pool of RMIDs: which are free, since when, and how often each has been
 * handed out. It knows nothing of processes, takes no lock and reads no clock,
 * and compiles in user space, where it is tested.
 *
 * A freed RMID rests for the limbo time: counters of its last owner may still
 * be on their way, and its cache lines decay. Free RMIDs form a FIFO, so the
 * one at the head has rested longest. Where it is known how much cache each
 * still holds, the cleanest of those that have rested longest goes first.
 *
 * The caller serialises all calls and hands in a clock that never steps back.
 */
#ifndef _MW_RMID_H
#define _MW_RMID_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stdint.h>
typedef uint64_t u64;
typedef uint32_t u32;
typedef int64_t s64;
#endif

/* The most RMIDs a pool may have: an id fits into 16 bits, and 0 is reserved. */
#define MW_RMID_MAX 65535

/* So many of those that have rested longest are compared. */
#define MW_RMID_CHOICE 16

/* A dirty RMID is handed out after that time all the same. */
#define MW_RMID_RESIDUE_NS 1000000000ULL

/**
 * struct mw_rmid - one RMID
 * @free_ns: when it was freed
 * @generation: how often it was handed out; 0 is never
 * @next: the next in the FIFO, 0 at its tail; MW_RMID_IN_USE while it is owned,
 *	MW_RMID_RESERVED if it never will be
 */
struct mw_rmid {
	u64 free_ns;
	u32 generation;
	u32 next;
};

#define MW_RMID_IN_USE	 (~0U)
#define MW_RMID_RESERVED (~1U)

/**
 * struct mw_rmid_pool - the pool
 * @entry: @nr + 1 of them, indexed by RMID; [0] is reserved and never touched
 * @nr: ids are 1 to @nr
 * @reserved: the first so many are never handed out
 * @head: RMID that has been free for longest, 0 if there is none
 * @tail: RMID freed last
 * @used: how many are owned
 * @limbo_ns: how long a freed RMID rests; may be changed at any time
 * @dirt: bytes of cache that each RMID holds, owned by the caller, who may change
 *	them at any time; NULL if that is not known
 * @clean: an RMID with more dirt than that rests longer, up to MW_RMID_DIRTY_NS;
 *	0: no matter how much
 * @retry_ns: all were too dirty: do not ask again before
 * @allocs: how many were handed out
 * @frees: how many were taken back
 */
struct mw_rmid_pool {
	struct mw_rmid *entry;
	u32 nr;
	u32 reserved;
	u32 head;
	u32 tail;
	u32 used;
	u64 limbo_ns;
	const u64 *residue;
	u64 residue_limit;
	u64 retry_ns;
	u64 allocs;
	u64 frees;
};

void mw_rmid_pool_init(struct mw_rmid_pool *pool, struct mw_rmid *entry, u32 nr, u64 limbo_ns);
void mw_rmid_pool_reserve(struct mw_rmid_pool *pool, u32 reserved);
int mw_rmid_alloc(struct mw_rmid_pool *pool, u64 now, u32 *rmid, u32 *generation);
int mw_rmid_free(struct mw_rmid_pool *pool, u32 rmid, u32 generation, u64 now);
bool mw_rmid_ripe_ns(const struct mw_rmid_pool *pool, u64 *ripe_ns);
u32 mw_rmid_resting(const struct mw_rmid_pool *pool, u64 now);

/* How many can be handed out. */
static inline u32 mw_rmid_total(const struct mw_rmid_pool *pool)
{
	return pool->nr - pool->reserved;
}

static inline bool mw_rmid_in_use(const struct mw_rmid_pool *pool, u32 rmid)
{
	return rmid && rmid <= pool->nr && pool->entry[rmid].next == MW_RMID_IN_USE;
}

#endif /* _MW_RMID_H */
