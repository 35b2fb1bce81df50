// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the counters said last of each RMID, see residue.h. The pool reads it without a lock.
 */
#include <linux/atomic.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>

#include "residue.h"
#include "rmid.h"

static ulong limbo_occupancy;
module_param(limbo_occupancy, ulong, 0400);
MODULE_PARM_DESC(limbo_occupancy,
		 "keep a freed RMID that holds more bytes of cache in limbo, for at most a second");

/* Residual occupancy of each RMID in bytes, the sum over all domains. */
static atomic64_t *residues;

/* In how many domains the hardware has stopped to count for each RMID. */
static atomic_t *untracked;

static u32 nr;

int mw_residue_init(u32 nr_rmids)
{
	residues = kvcalloc(nr_rmids + 1, sizeof(*residues), GFP_KERNEL);
	untracked = kvcalloc(nr_rmids + 1, sizeof(*untracked), GFP_KERNEL);
	if (!residues || !untracked) {
		mw_residue_uninit();
		return -ENOMEM;
	}
	nr = nr_rmids + 1;
	return 0;
}

void mw_residue_uninit(void)
{
	kvfree(residues);
	kvfree(untracked);
}

/* @pool chooses by it, and must not be used after mw_residue_uninit(). */
void mw_residue_use(struct mw_rmid_pool *pool)
{
	BUILD_BUG_ON(sizeof(*residues) != sizeof(*pool->residue));
	BUILD_BUG_ON(sizeof(*untracked) != sizeof(*pool->untracked));
	pool->residue = (const u64 *)residues;
	pool->untracked = (const u32 *)untracked;
	pool->residue_limit = limbo_occupancy;
}

size_t mw_residue_memory(void)
{
	return nr * (sizeof(*residues) + sizeof(*untracked));
}

/* The occupancy of @rmid in one domain has changed by @bytes. */
void mw_residue_add(u32 rmid, s64 bytes)
{
	if (bytes)
		atomic64_add(bytes, &residues[rmid]);
}

/* Did the hardware count for @rmid in one domain, at the reading before and at this one? */
void mw_residue_note_tracked(u32 rmid, bool before, bool now)
{
	if (before != now)
		atomic_add(before ? 1 : -1, &untracked[rmid]);
}

void mw_residue_forget(void)
{
	u32 rmid;

	for (rmid = 0; rmid < nr; rmid++) {
		atomic64_set(&residues[rmid], 0);
		atomic_set(&untracked[rmid], 0);
	}
}
