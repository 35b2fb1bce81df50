// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The values of a row, by the table of metrics.
 */
#include "account/summary-row.h"

#include "base/value.h"

static struct memwatch_value *account_value(struct memwatch_summary_row *row, uint32_t account)
{
	switch (account) {
	case MEMWATCH_ACCOUNT_CPU_TIME:
		return &row->cpu_time_ns;
	case MEMWATCH_ACCOUNT_OCCUPANCY_MAX:
		return &row->occupancy_max;
	case MEMWATCH_ACCOUNT_MEASURED:
		return &row->measured_ppm;
	default:
		return &row->residue;
	}
}

static struct memwatch_value *row_value(struct mw_summary_row *row,
					const struct memwatch_metric_info *metric)
{
	struct memwatch_value *const rdt[MEMWATCH_RDT_MAX] = {
		[MEMWATCH_RDT_OCCUPANCY] = &row->seen.occupancy_mean,
		[MEMWATCH_RDT_MBM_TOTAL] = &row->seen.mbm_total,
		[MEMWATCH_RDT_MBM_LOCAL] = &row->seen.mbm_local,
	};

	switch (metric->source) {
	case MEMWATCH_METRIC_ACCOUNT:
		return account_value(&row->seen, metric->index);
	case MEMWATCH_METRIC_COUNTER:
		return &row->counter[metric->index];
	case MEMWATCH_METRIC_RDT:
		return rdt[metric->index];
	default:
		return NULL;
	}
}

void mw_summary_row_mark(struct mw_summary_row *row)
{
	const struct memwatch_metric_info *metric;

	for (unsigned int i = 0; (metric = memwatch_metric_at(i)); i++)
		if (metric->source != MEMWATCH_METRIC_RATIO)
			mw_value_mark_lower_bound(row_value(row, metric));
}

const struct memwatch_value *memwatch_summary_value(const struct memwatch_summary_row *row,
						    const struct memwatch_metric_info *metric)
{
	return row_value((struct mw_summary_row *)(void *)(uintptr_t)row, metric);
}

const struct memwatch_value *memwatch_summary_counter_at(const struct memwatch_summary_row *row,
							 unsigned int counter)
{
	return counter < MEMWATCH_COUNTER_MAX
		       ? &((const struct mw_summary_row *)(const void *)row)->counter[counter]
		       : NULL;
}

const struct memwatch_summary_rmid *memwatch_summary_rmid_at(const struct memwatch_summary_row *row,
							     unsigned int index)
{
	const struct mw_summary_row *whole = (const struct mw_summary_row *)(const void *)row;

	if (index >= row->nr_rmids)
		return NULL;
	return row->nr_rmids > 1 ? &whole->rmids[index] : &whole->rmid;
}
