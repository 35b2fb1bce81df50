/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Looking at the new frames of the rings, see scan.c.
 */
#ifndef MW_MERGE_SCAN_H
#define MW_MERGE_SCAN_H

#include "merge/state.h"

int mw_merge_scan_all(struct mw_merge *merge);
int mw_merge_scan_limiting(struct mw_merge *merge, uint64_t mark_ns);
int mw_merge_scan_filling(struct mw_merge *merge);
int mw_merge_close_gaps(struct mw_merge *merge);

#endif /* MW_MERGE_SCAN_H */
