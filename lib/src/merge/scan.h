/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Scanning the rings: new frames become pending entries.
 */
#ifndef MW_MERGE_SCAN_H
#define MW_MERGE_SCAN_H

#include "merge/state.h"

/* Scans one quantum of each ring and gives space back to the writers. Returns 0 or -ENOMEM. */
int mw_merge_scan_all(struct mw_merge *merge);

/*
 * Scans more of the rings whose frontier holds back the watermark @mark_ns. Returns
 * 1, 0 if there is nothing more to scan in them, or -ENOMEM.
 */
int mw_merge_scan_limiting(struct mw_merge *merge, uint64_t mark_ns);

/*
 * Scans the rest of the rings that are filling up while nothing may be delivered, so
 * that they no longer wait for the others. Returns as mw_merge_scan_limiting().
 */
int mw_merge_scan_filling(struct mw_merge *merge);

/* At the end of the stream: ends the losses that no record follows. 0 or -ENOMEM. */
int mw_merge_close_gaps(struct mw_merge *merge);

#endif /* MW_MERGE_SCAN_H */
