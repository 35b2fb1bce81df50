/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The pool of RMIDs: which are free, since when, and how often each was
 * allocated. The pool has no notion of processes, takes no lock and reads no
 * clock. It is also built in user space, where it is tested.
 *
 * A freed RMID stays in limbo for a while, because counters of its last owner
 * may still be under way, and its cache lines decay. Free RMIDs form a FIFO, so
 * the one at the head has rested longest. Where the residual occupancy of each
 * RMID is known, the RMID with the lowest one is chosen among those that have
 * rested longest.
 *
 * The caller serialises all calls and passes times that never decrease.
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

/* The limit of a pool: an RMID fits into 16 bits, and RMID 0 is reserved. */
#define MW_RMID_MAX 65535

/* Number of RMIDs that have rested longest, of which one is chosen. */
#define MW_RMID_CHOICE 16

/* After this time in limbo an RMID is allocated whatever its residual occupancy. */
#define MW_RMID_RESIDUE_NS 1000000000ULL

/**
 * struct mw_rmid - one RMID
 * @free_ns: when it was freed
 * @generation: number of its allocations so far
 * @next: the next RMID in the FIFO, 0 at the tail; MW_RMID_IN_USE while it is
 * 	owned, MW_RMID_RESERVED if it is never allocated
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
 * @entry: @nr + 1 entries, indexed by RMID; entry 0 is not used
 * @nr: the RMIDs are 1 to @nr
 * @reserved: the lowest so many RMIDs are never allocated
 * @head: RMID that has been free for longest, 0 if none is free
 * @tail: RMID that was freed last
 * @used: number of RMIDs that are owned
 * @limbo_ns: how long a freed RMID rests; may be changed at any time
 * @residue: residual occupancy of each RMID in bytes. Owned by the caller, who may
 * 	change the values at any time; NULL if they are not known.
 * @untracked: of each RMID, in how many L3 domains the hardware has stopped to count for
 * 	it. Like @residue.
 * @residue_limit: a freed RMID with a higher residual occupancy rests longer, by
 * 	MW_RMID_RESIDUE_NS at most; 0 for no limit
 * @retry_ns: when to try again, if all free RMIDs were above @residue_limit
 * @allocs: number of allocations
 * @frees: number of RMIDs freed
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
	const u32 *untracked;
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
bool mw_rmid_is_resting(const struct mw_rmid_pool *pool, u32 rmid, u64 now);

/* The number of RMIDs that can be allocated at all. */
static inline u32 mw_rmid_total(const struct mw_rmid_pool *pool)
{
	return pool->nr - pool->reserved;
}

static inline bool mw_rmid_in_use(const struct mw_rmid_pool *pool, u32 rmid)
{
	return rmid && rmid <= pool->nr && pool->entry[rmid].next == MW_RMID_IN_USE;
}

#endif /* _MW_RMID_H */
