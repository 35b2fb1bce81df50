// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The pool of RMIDs, see rmid.h.
 */
#ifdef __KERNEL__
#include <linux/errno.h>
#else
#include <errno.h>
#endif

#include "rmid.h"

/* When to try again if all free RMIDs have too high a residual occupancy. */
#define MW_RMID_RETRY_NS 1000000ULL

/* The comparison is correct even if the clock wraps, since it uses the difference. */
static bool rmid_has_rested(const struct mw_rmid_pool *pool, const struct mw_rmid *r, u64 now)
{
	return !r->generation || (s64)(now - r->free_ns - pool->limbo_ns) >= 0;
}

static u64 rmid_residue(const struct mw_rmid_pool *pool, u32 rmid)
{
	return pool->residue ? *(const volatile u64 *)&pool->residue[rmid] : 0;
}

static u32 rmid_untracked(const struct mw_rmid_pool *pool, u32 rmid)
{
	return pool->untracked ? *(const volatile u32 *)&pool->untracked[rmid] : 0;
}

/* The values of an RMID that the hardware does not count for would be unavailable. */
static bool rmid_is_better(const struct mw_rmid_pool *pool, u32 rmid, u32 other)
{
	u32 mine = rmid_untracked(pool, rmid), others = rmid_untracked(pool, other);

	return mine == others ? rmid_residue(pool, rmid) < rmid_residue(pool, other)
			      : mine < others;
}

static bool rmid_holds_too_much(const struct mw_rmid_pool *pool, u32 rmid, u64 now)
{
	const struct mw_rmid *r = &pool->entry[rmid];

	/* What others left in an RMID that was never freed may stay for ever. */
	return pool->residue_limit && rmid_residue(pool, rmid) > pool->residue_limit &&
	       r->generation && now - r->free_ns < pool->limbo_ns + MW_RMID_RESIDUE_NS;
}

/*
 * Choose the RMID with the lowest residual occupancy among those at the head
 * that have rested, of those that the hardware counts for if there are any. Sets @before to its
 * predecessor. Returns 0 if there is none.
 */
static u32 rmid_choose(const struct mw_rmid_pool *pool, u64 now, u32 *before)
{
	u32 best = 0, last = 0, rmid, i = 0;

	for (rmid = pool->head; rmid && i < MW_RMID_CHOICE; rmid = pool->entry[rmid].next, i++) {
		if (!rmid_has_rested(pool, &pool->entry[rmid], now))
			break;
		if (!rmid_holds_too_much(pool, rmid, now) &&
		    (!best || rmid_is_better(pool, rmid, best))) {
			best = rmid;
			*before = last;
			if (!rmid_residue(pool, rmid) && !rmid_untracked(pool, rmid))
				break;
		}
		last = rmid;
	}
	return best;
}

static void rmid_unlink_after(struct mw_rmid_pool *pool, u32 before, u32 rmid)
{
	u32 next = pool->entry[rmid].next;

	if (before)
		pool->entry[before].next = next;
	else
		pool->head = next;
	if (pool->tail == rmid)
		pool->tail = before;
}

static void rmid_append(struct mw_rmid_pool *pool, u32 rmid)
{
	pool->entry[rmid].next = 0;
	if (pool->head)
		pool->entry[pool->tail].next = rmid;
	else
		pool->head = rmid;
	pool->tail = rmid;
}

/**
 * mw_rmid_pool_init - initialise a pool of RMIDs that were never allocated
 * @pool: the pool
 * @entry: @nr + 1 entries; the caller owns them and keeps them as long as @pool
 * @nr: number of RMIDs, at most MW_RMID_MAX
 * @limbo_ns: how long a freed RMID rests
 */
void mw_rmid_pool_init(struct mw_rmid_pool *pool, struct mw_rmid *entry, u32 nr, u64 limbo_ns)
{
	u32 rmid;

	*pool = (struct mw_rmid_pool){ .entry = entry, .nr = nr, .limbo_ns = limbo_ns };
	for (rmid = 0; rmid <= nr; rmid++)
		entry[rmid] = (struct mw_rmid){ .next = MW_RMID_IN_USE };
	for (rmid = 1; rmid <= nr; rmid++)
		rmid_append(pool, rmid);
}

/**
 * mw_rmid_pool_reserve - never allocate the lowest RMIDs
 * @pool: a pool right after mw_rmid_pool_init()
 * @reserved: how many RMIDs to reserve, fewer than there are
 */
void mw_rmid_pool_reserve(struct mw_rmid_pool *pool, u32 reserved)
{
	u32 rmid;

	for (rmid = 1; rmid <= reserved; rmid++)
		pool->entry[rmid].next = MW_RMID_RESERVED;
	pool->head = reserved + 1;
	pool->reserved = reserved;
}

/**
 * mw_rmid_alloc - allocate an RMID
 * @pool: the pool
 * @now: current time
 * @rmid: set to the RMID
 * @generation: set to its generation, which is never 0
 *
 * Return: 0; -EAGAIN if all free RMIDs are in limbo or have too high a residual
 * occupancy; -ENOSPC if no RMID is free
 */
int mw_rmid_alloc(struct mw_rmid_pool *pool, u64 now, u32 *rmid, u32 *generation)
{
	struct mw_rmid *r;
	u32 chosen, before;

	if (!pool->head)
		return -ENOSPC;
	chosen = rmid_choose(pool, now, &before);
	if (!chosen) {
		pool->retry_ns = now + MW_RMID_RETRY_NS;
		return -EAGAIN;
	}
	rmid_unlink_after(pool, before, chosen);
	r = &pool->entry[chosen];
	r->next = MW_RMID_IN_USE;
	if (!++r->generation)
		r->generation = 1;
	pool->used++;
	pool->allocs++;
	*rmid = chosen;
	*generation = r->generation;
	return 0;
}

/**
 * mw_rmid_free - return an RMID to the pool
 * @pool: the pool
 * @rmid: the RMID
 * @generation: the generation with which it was allocated
 * @now: current time, the start of its limbo
 *
 * Return: 0; -EINVAL if there is no such RMID; -ESTALE if this generation does not
 * own it (any more), and then nothing changes
 */
int mw_rmid_free(struct mw_rmid_pool *pool, u32 rmid, u32 generation, u64 now)
{
	struct mw_rmid *r;

	if (!rmid || rmid > pool->nr)
		return -EINVAL;
	r = &pool->entry[rmid];
	if (r->next != MW_RMID_IN_USE || r->generation != generation)
		return -ESTALE;

	r->free_ns = now;
	rmid_append(pool, rmid);
	pool->used--;
	pool->frees++;
	return 0;
}

/**
 * mw_rmid_ripe_ns - when can mw_rmid_alloc() succeed?
 * @pool: the pool
 * @ripe_ns: set to the time; 0 if it can succeed at once
 *
 * Return: false if no RMID is free, so the time is unknown
 */
bool mw_rmid_ripe_ns(const struct mw_rmid_pool *pool, u64 *ripe_ns)
{
	const struct mw_rmid *r = &pool->entry[pool->head];

	if (!pool->head)
		return false;
	*ripe_ns = r->generation ? r->free_ns + pool->limbo_ns : 0;
	/* Nothing tells when the residual occupancy falls, so try again at intervals. */
	if (pool->residue_limit && (s64)(pool->retry_ns - *ripe_ns) > 0)
		*ripe_ns = pool->retry_ns;
	return true;
}

/**
 * mw_rmid_is_resting - is an RMID in limbo, for its time or for what it still holds?
 * @pool: the pool
 * @rmid: the RMID, from 1 to @pool->nr
 * @now: current time
 */
bool mw_rmid_is_resting(const struct mw_rmid_pool *pool, u32 rmid, u64 now)
{
	const struct mw_rmid *r = &pool->entry[rmid];

	return r->next != MW_RMID_IN_USE && r->next != MW_RMID_RESERVED &&
	       (!rmid_has_rested(pool, r, now) || rmid_holds_too_much(pool, rmid, now));
}
