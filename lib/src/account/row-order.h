/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The order of the rows of a summary: by a metric, or by another member.
 */
#ifndef MW_ROW_ORDER_H
#define MW_ROW_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memwatch/summary.h>

/**
 * struct mw_row_order - what rows are sorted by
 * @key: &enum memwatch_summary_key
 * @metric: the metric of this key, or NULL
 * @descending: largest first
 */
struct mw_row_order {
	unsigned int key;
	const struct memwatch_metric_info *metric;
	bool descending;
};

/**
 * struct mw_row_place - a row that is sorted
 * @number: what it is sorted by
 * @comm: likewise, if the key is the name; otherwise NULL
 * @row: its number, which decides between rows that are equal
 * @missing: it has no value and comes last
 */
struct mw_row_place {
	uint64_t number;
	const char *comm;
	uint32_t row;
	bool missing;
};

/* Returns 0, or -EINVAL if there is no such key. */
int mw_row_order_init(struct mw_row_order *order, unsigned int key, bool descending);

/* The place of a row, valid as long as the row. */
struct mw_row_place mw_row_order_place(const struct mw_row_order *order,
				       const struct memwatch_summary_row *row, uint32_t number);

void mw_row_order_sort(const struct mw_row_order *order, struct mw_row_place *places, size_t nr);

#endif /* MW_ROW_ORDER_H */
