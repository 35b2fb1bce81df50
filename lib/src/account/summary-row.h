/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A row of a summary with what callers see through functions only.
 */
#ifndef MW_SUMMARY_ROW_H
#define MW_SUMMARY_ROW_H

#include <stdint.h>

#include <memwatch/summary.h>

/**
 * struct mw_summary_row - a row
 * @seen: what the caller sees; the first member, so that its address is that of the row
 * @counter: sums of the counters, by &enum memwatch_counter
 * @max_rmids: how many fit into @rmids
 * @rmids: the RMIDs of the row, if there are several
 * @rmid: the first one
 */
struct mw_summary_row {
	struct memwatch_summary_row seen;
	struct memwatch_value counter[MEMWATCH_COUNTER_MAX];
	uint32_t max_rmids;
	struct memwatch_summary_rmid *rmids;
	struct memwatch_summary_rmid rmid;
};

/* All values of the row are lower bounds. */
void mw_summary_row_mark(struct mw_summary_row *row);

#endif /* MW_SUMMARY_ROW_H */
