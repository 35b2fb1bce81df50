// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Sorting: each row gets a place with what it is sorted by, and the places are sorted.
 */
#include "account/row-order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <memwatch/metric.h>

/* A ratio in parts per million; unavailable if its divisor is 0. */
static uint64_t sort_ratio(const struct memwatch_summary_row *row,
			   const struct memwatch_metric_info *ratio,
			   struct memwatch_value *measured)
{
	const struct memwatch_value *divisor = memwatch_summary_counter_at(row, ratio->divisor);

	*measured = *memwatch_summary_counter_at(row, ratio->index);
	if (!divisor->value) {
		measured->status = MEMWATCH_STATUS_UNAVAILABLE;
		return measured->value;
	}
	return (uint64_t)((unsigned __int128)measured->value * 1000000 / divisor->value);
}

static const struct memwatch_metric_info *find_sort_metric(unsigned int key)
{
	const struct memwatch_metric_info *metric;

	for (unsigned int i = 0; (metric = memwatch_metric_at(i)); i++)
		if (metric->sort && metric->sort == key)
			return metric;
	return NULL;
}

/* The number by which a row is sorted; @measured says whether it has one. */
static uint64_t sort_number(const struct mw_row_order *order,
			    const struct memwatch_summary_row *row, struct memwatch_value *measured)
{
	const struct memwatch_metric_info *metric = order->metric;

	if (metric && metric->source == MEMWATCH_METRIC_RATIO)
		return sort_ratio(row, metric, measured);
	if (metric) {
		*measured = *memwatch_summary_value(row, metric);
		return measured->value;
	}
	*measured = (struct memwatch_value){ .parts = 1, .status = MEMWATCH_STATUS_OK };
	switch (order->key) {
	case MEMWATCH_SORT_SLOTS:
		return row->slots;
	case MEMWATCH_SORT_FIRST:
		return row->first_ns;
	case MEMWATCH_SORT_TGID:
		return row->tgid;
	case MEMWATCH_SORT_CPU:
		return row->cpu;
	default:
		return 0;
	}
}

int mw_row_order_init(struct mw_row_order *order, unsigned int key, bool descending)
{
	const struct memwatch_metric_info *metric = find_sort_metric(key);

	if (!metric && key > MEMWATCH_SORT_CPU)
		return -EINVAL;
	*order = (struct mw_row_order){ key, metric, descending };
	return 0;
}

struct mw_row_place mw_row_order_place(const struct mw_row_order *order,
				       const struct memwatch_summary_row *row, uint32_t number)
{
	struct mw_row_place place = {
		.comm = order->key == MEMWATCH_SORT_COMM ? row->comm : NULL,
		.row = number,
	};
	struct memwatch_value value;

	place.number = sort_number(order, row, &value);
	place.missing = !value.parts || value.status == MEMWATCH_STATUS_UNAVAILABLE ||
			value.status == MEMWATCH_STATUS_FIRST;
	return place;
}

static int compare_places(const void *a, const void *b, void *arg)
{
	const struct mw_row_place *x = a, *y = b;
	const struct mw_row_order *by = arg;
	int order;

	if (x->missing != y->missing)
		return x->missing ? 1 : -1;
	if (x->comm)
		order = strncmp(x->comm, y->comm, MEMWATCH_COMM_LEN);
	else
		order = x->number < y->number ? -1 : x->number > y->number;
	if (order)
		return by->descending ? -order : order;
	return x->row < y->row ? -1 : x->row > y->row;
}

void mw_row_order_sort(const struct mw_row_order *order, struct mw_row_place *places, size_t nr)
{
	struct mw_row_order by = *order;

	qsort_r(places, nr, sizeof(*places), compare_places, &by);
}
