/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Rows of a summary, as a report shows them: the library adds up, this says
 * how it is called and written.
 */
#ifndef MW_ROWS_H
#define MW_ROWS_H

#include <memwatch/memwatch.h>

#include "growth/latest.h"
#include "output/table.h"

/* Names of enum memwatch_summary_by on the command line, ends with NULL. */
extern const char *const mw_by_names[];
/* Keys of the JSON array of rows. */
extern const char *const mw_by_arrays[];

/* Names of the sort keys on the command line, ends with NULL. */
extern const char *const mw_sort_names[];
/* The library's key and direction of one of them. */
unsigned int mw_sort_key(int name, bool *descending);
/* The order that is used if the user has not said. */
int mw_sort_default(unsigned int by);

#define MW_ROWS_COLUMNS 24

/* Columns for one kind of row. */
struct mw_rows {
	unsigned int by;
	struct mw_column columns[MW_ROWS_COLUMNS];
	size_t nr_columns;
	uint64_t origin_ns;		/* what "first_ns" and "last_ns" are relative to */
	struct mw_growth_latest growth; /* by process */
};

/* Memory that the cells of a table point to. */
struct mw_pool {
	void *chunks;
};

void *mw_pool_alloc(struct mw_pool *pool, size_t bytes);
void mw_pool_free(struct mw_pool *pool);

void mw_rows_init(struct mw_rows *rows, unsigned int by, uint64_t origin_ns);
void mw_rows_uninit(struct mw_rows *rows);
/* A record that says something of growth: 0 or -ENOMEM. Its columns are in the table then. */
int mw_rows_growth(struct mw_rows *rows, const struct memwatch_record_growth *record);
/* Fills the cells of one row; 0 or -ENOMEM. Strings are copied to @pool. */
int mw_rows_fill(const struct mw_rows *rows, const struct memwatch_summary_row *row,
		 struct mw_pool *pool, struct mw_cell *cells);

/* Instructions / cycles, with the worse status of both. */
struct mw_cell mw_ipc(const struct memwatch_summary_row *row);
/* A measured value as a cell. */
struct mw_cell mw_measured(const struct memwatch_value *value);
/* RMIDs in order, each once. */
int mw_rmid_list(const struct memwatch_summary_row *row, struct mw_pool *pool, struct mw_list *ret);
/* The name of a row: its command, or what it stands for. */
const char *mw_row_name(const struct memwatch_summary_row *row, unsigned int by);

#endif
