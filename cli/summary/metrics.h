/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The library's table of metrics as columns and cells, and the sort keys of rows.
 */
#ifndef MW_METRICS_H
#define MW_METRICS_H

#include <memwatch/memwatch.h>

#include "output/table.h"

/* The column of a metric; details are hidden in tables for people. */
struct mw_column mw_metric_column(const struct memwatch_metric_info *metric);
/* The value of a metric in a row of a summary. */
struct mw_cell mw_metric_cell(const struct memwatch_summary_row *row,
			      const struct memwatch_metric_info *metric);

/*
 * The names of the sort keys, for MW_OPTION_CHOICE: first those of the metrics, then those
 * of other members of a row. The list is made before main(), because the tables of
 * options are constant; it ends with NULL.
 */
#define MW_SORTS_MAX 32
extern const char *mw_sort_names[MW_SORTS_MAX + 1];
/* The key and the direction for memwatch_summary_sort() of the name number @name. */
unsigned int mw_sort_key(int name, bool *descending);
/* The number of the name that sorts by @key (&enum memwatch_summary_key). */
int mw_sort_find(unsigned int key);

#endif
