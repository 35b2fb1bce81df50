/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The latest growth record of each process, from a recording or from a background
 * monitor, and the columns that tables of processes show of it.
 */
#ifndef MW_GROWTH_LATEST_H
#define MW_GROWTH_LATEST_H

#include <memwatch/memwatch.h>

#include "output/table.h"

/* A tree by process, of tsearch(3). A zeroed structure is an empty one. */
struct mw_growth_latest {
	void *tree;
	size_t nr;
	size_t max; /* further processes are left out; 0: no limit */
};

/* Copies @record in place of the earlier one of its process. Returns 0 or -ENOMEM. */
int mw_growth_latest_update(struct mw_growth_latest *latest,
			    const struct memwatch_record_growth *record);
/* The latest record of a process, valid until the next update; NULL if there is none. */
const struct memwatch_record_growth *mw_growth_latest_find(const struct mw_growth_latest *latest,
							   uint32_t tgid, uint64_t start_ns);
void mw_growth_latest_uninit(struct mw_growth_latest *latest);

/* The columns: verdict, growth per second, time until the limit is reached. */
enum {
	MW_GROWTH_LATEST_VERDICT,
	MW_GROWTH_LATEST_SLOPE,
	MW_GROWTH_LATEST_ETA,
	MW_GROWTH_LATEST_COLUMNS,
};
extern const struct mw_column mw_growth_latest_columns[MW_GROWTH_LATEST_COLUMNS];
/* Fills one cell for each column. If @record is NULL, the values are missing. */
void mw_growth_latest_fill_cells(const struct memwatch_record_growth *record,
				 struct mw_cell *cells);

#endif
