// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Nothing here names a metric: a new one in the library's table appears in every report.
 */
#include "summary/metrics.h"

static enum mw_unit unit_of(const struct memwatch_metric_info *metric)
{
	switch (metric->unit) {
	case MEMWATCH_UNIT_BYTES:
		return MW_UNIT_BYTES;
	case MEMWATCH_UNIT_NS:
		return MW_UNIT_NS;
	case MEMWATCH_UNIT_RATIO:
		return MW_UNIT_RATIO;
	case MEMWATCH_UNIT_PPM:
		return MW_UNIT_PPM;
	default:
		return MW_UNIT_COUNT;
	}
}

struct mw_column mw_metric_column(const struct memwatch_metric_info *metric)
{
	bool detail = metric->flags & MEMWATCH_METRIC_DETAIL;

	return (struct mw_column){
		.key = metric->key,
		.title = metric->heading,
		.kind = metric->source == MEMWATCH_METRIC_RATIO ? MW_KIND_DOUBLE : MW_KIND_UINT,
		.unit = unit_of(metric),
		.flags = MW_COLUMN_MEASURED | (detail ? MW_COLUMN_HIDDEN : 0),
	};
}

/* The quotient of two counters, with the worse status of both. */
static struct mw_cell ratio_cell(const struct memwatch_value *dividend,
				 const struct memwatch_value *divisor)
{
	struct mw_cell cell = { .status = MEMWATCH_STATUS_UNAVAILABLE };

	if (!mw_status_has_value(dividend->status) || !mw_status_has_value(divisor->status) ||
	    !divisor->value)
		return cell;
	cell.status = memwatch_status_worst(divisor->status, dividend->status);
	cell.real = (double)dividend->value / (double)divisor->value;
	return cell;
}

struct mw_cell mw_metric_cell(const struct memwatch_summary_row *row,
			      const struct memwatch_metric_info *metric)
{
	const struct memwatch_value *value = memwatch_summary_value(row, metric);

	if (!value)
		return ratio_cell(memwatch_summary_counter_at(row, metric->index),
				  memwatch_summary_counter_at(row, metric->divisor));
	return (struct mw_cell){ .number = value->value, .status = value->status };
}

/* ------------------------------------------------------------- sort keys */

static struct {
	unsigned int key;
	bool descending;
} sorts[MW_SORTS_MAX];

const char *mw_sort_names[MW_SORTS_MAX + 1];

static void add_metric_sort(const char *name, unsigned int key, bool descending)
{
	static size_t nr_sorts;

	if (nr_sorts == MW_SORTS_MAX)
		return;
	mw_sort_names[nr_sorts] = name;
	sorts[nr_sorts].key = key;
	sorts[nr_sorts].descending = descending;
	nr_sorts++;
}

__attribute__((constructor)) static void list_sorts(void)
{
	const struct memwatch_metric_info *metric;

	for (unsigned int i = 0; (metric = memwatch_metric_at(i)); i++)
		if (metric->sort_name)
			add_metric_sort(metric->sort_name, metric->sort, true);
	add_metric_sort("slots", MEMWATCH_SORT_SLOTS, true);
	add_metric_sort("first", MEMWATCH_SORT_FIRST, false);
	add_metric_sort("pid", MEMWATCH_SORT_TGID, false);
	add_metric_sort("comm", MEMWATCH_SORT_COMM, false);
	add_metric_sort("cpu", MEMWATCH_SORT_CPU, false);
}

unsigned int mw_sort_key(int name, bool *descending)
{
	*descending = sorts[name].descending;
	return sorts[name].key;
}

int mw_sort_find(unsigned int key)
{
	int name = 0;

	while (mw_sort_names[name] && sorts[name].key != key)
		name++;
	return mw_sort_names[name] ? name : 0;
}
