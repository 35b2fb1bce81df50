/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the counters said last of each RMID, as far as it matters for who gets it next: how
 * much cache its earlier owners have left behind, and whether the hardware still counts for
 * it. AMD processors count the bandwidth of a limited number of RMIDs at a time.
 */
#ifndef _MW_RESIDUE_H
#define _MW_RESIDUE_H

#include <linux/types.h>

struct mw_rmid_pool;

int mw_residue_init(u32 nr_rmids);
void mw_residue_use(struct mw_rmid_pool *pool);
void mw_residue_uninit(void);
size_t mw_residue_memory(void);

/* Any context. */
void mw_residue_add(u32 rmid, s64 bytes);
void mw_residue_note_tracked(u32 rmid, bool before, bool now);

/* Nothing reads counters at this time. RMIDs may be allocated. */
void mw_residue_forget(void);

#endif /* _MW_RESIDUE_H */
