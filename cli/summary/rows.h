/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Rows of a summary as report and top show them. The library adds up; here the sums
 * get their columns.
 */
#ifndef MW_ROWS_H
#define MW_ROWS_H

#include <memwatch/memwatch.h>

#include "growth/latest.h"
#include "output/table.h"
#include "summary/metrics.h"
#include "common/pool.h"

/* Names of enum memwatch_summary_by on the command line, ends with NULL. */
extern const char *const mw_by_names[];
/* Keys of the JSON array of rows, by the same enumeration. */
extern const char *const mw_by_arrays[];

/* The sort key for rows of this kind, as an index into mw_sort_names. */
int mw_sort_default(unsigned int by);

#define MW_ROWS_COLUMNS	   32
#define MW_ROWS_IDENTITIES 8

/**
 * struct mw_rows - the columns of one kind of row
 * @by: &enum memwatch_summary_by
 * @columns: identity, growth (by process only), activity, metrics
 * @nr_columns: length of @columns
 * @nr_identities: how many columns identify the row
 * @name: the column with the name of the row; not less than @nr_identities if there is none
 * @first_value: first column that says how much and not who
 * @origin_ns: the moment from which first_ns and last_ns count
 * @growth: the latest record of growth of each process
 */
struct mw_rows {
	unsigned int by;
	struct mw_column columns[MW_ROWS_COLUMNS];
	size_t nr_columns;
	size_t nr_identities;
	size_t name;
	size_t first_value;
	uint64_t origin_ns;
	struct mw_growth_latest growth;
};

void mw_rows_init(struct mw_rows *rows, unsigned int by, uint64_t origin_ns);
void mw_rows_uninit(struct mw_rows *rows);
/* Notes a record of growth and shows the columns of growth. Returns 0 or -ENOMEM. */
int mw_rows_growth(struct mw_rows *rows, const struct memwatch_record_growth *record);
/*
 * Fills the cells of one row; texts are copied to @pool. The column of a share appears with
 * the first row that was not measured all of the time. Returns 0 or -ENOMEM.
 */
int mw_rows_fill(struct mw_rows *rows, const struct memwatch_summary_row *row, struct mw_pool *pool,
		 struct mw_cell *cells);

/* The RMIDs of a row in order of appearance, each once. Returns 0 or -ENOMEM. */
int mw_rmid_list(const struct memwatch_summary_row *row, struct mw_pool *pool, struct mw_list *ret);
/* Whether a row sums up what belongs to no process, or by cgroup to no cgroup that is known. */
bool mw_row_is_unassigned(const struct memwatch_summary_row *row, unsigned int by);
/* The name of a row: the command of its process, or what it stands for in parentheses. */
const char *mw_row_name(const struct memwatch_summary_row *row, unsigned int by);

#endif
