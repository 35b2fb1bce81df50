// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The latest growth record of each process, in a balanced tree: nobody can choose processes
 * that make it slow.
 */
#include <errno.h>
#include <search.h>
#include <stdlib.h>

#include "growth/latest.h"
#include "growth/verdict.h"

const struct mw_column mw_growth_latest_columns[MW_GROWTH_LATEST_COLUMNS] = {
	[MW_GROWTH_LATEST_VERDICT] = { "growth_verdict", "VERDICT", MW_KIND_TEXT, 0, 0 },
	[MW_GROWTH_LATEST_SLOPE] = { "growth_bytes_per_second", "RATE", MW_KIND_UINT, MW_UNIT_RATE,
				     0 },
	[MW_GROWTH_LATEST_ETA] = { "growth_eta_seconds", "LIMIT IN", MW_KIND_UINT, 0, 0 },
};

void mw_growth_latest_fill_cells(const struct memwatch_record_growth *record, struct mw_cell *cells)
{
	for (int i = 0; i < MW_GROWTH_LATEST_COLUMNS; i++)
		cells[i] = (struct mw_cell){ .missing = true };
	if (!record)
		return;
	cells[MW_GROWTH_LATEST_VERDICT] = (struct mw_cell){ .text = memwatch_growth_verdict_name(
								    record->verdict) };
	cells[MW_GROWTH_LATEST_SLOPE] = (struct mw_cell){
		.number = record->slope,
		.missing = !mw_verdict_has_slope(record->verdict, record->slope),
	};
	if (record->eta_s != UINT32_MAX)
		cells[MW_GROWTH_LATEST_ETA] = (struct mw_cell){ .number = record->eta_s };
}

/* Orders records by process. */
static int compare_processes(const void *left, const void *right)
{
	const struct memwatch_record_growth *a = left, *b = right;

	if (a->tgid != b->tgid)
		return a->tgid < b->tgid ? -1 : 1;
	if (a->start_time_ns != b->start_time_ns)
		return a->start_time_ns < b->start_time_ns ? -1 : 1;
	return 0;
}

int mw_growth_latest_update(struct mw_growth_latest *latest,
			    const struct memwatch_record_growth *record)
{
	void *node = tfind(record, &latest->tree, compare_processes);
	struct memwatch_record_growth *copy;

	if (node) {
		**(struct memwatch_record_growth **)node = *record;
		return 0;
	}
	if (latest->max && latest->nr >= latest->max)
		return 0;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	*copy = *record;
	if (!tsearch(copy, &latest->tree, compare_processes)) {
		free(copy);
		return -ENOMEM;
	}
	latest->nr++;
	return 0;
}

const struct memwatch_record_growth *mw_growth_latest_find(const struct mw_growth_latest *latest,
							   uint32_t tgid, uint64_t start_ns)
{
	struct memwatch_record_growth key = { .tgid = tgid, .start_time_ns = start_ns };
	void *node = tfind(&key, &latest->tree, compare_processes);

	return node ? *(struct memwatch_record_growth **)node : NULL;
}

void mw_growth_latest_uninit(struct mw_growth_latest *latest)
{
	tdestroy(latest->tree, free);
	*latest = (struct mw_growth_latest){ 0 };
}
