// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The share of the run time that was measured.
 */
#include "account/row-share.h"

#include "base/timemath.h"
#include "base/value.h"

#define ALL_PPM 1000000U

/* The sums of a row; an occupancy is the same whatever was measured before. */
static void mark_sums(struct mw_summary_row *row, void (*mark)(struct memwatch_value *value))
{
	mark(&row->seen.cpu_time_ns);
	for (int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		mark(&row->counter[i]);
	mark(&row->seen.mbm_total);
	mark(&row->seen.mbm_local);
}

static void mark_multiplexed(struct memwatch_value *value)
{
	if (value->status == MEMWATCH_STATUS_OK)
		value->status = MEMWATCH_STATUS_MULTIPLEXED;
}

static __u64 share_ppm(uint64_t measured_ns, uint64_t unmeasured_ns)
{
	uint64_t run_ns = mw_add_sat(measured_ns, unmeasured_ns);

	return (__u64)((unsigned __int128)measured_ns * ALL_PPM / run_ns);
}

void mw_row_share(struct mw_summary_row *row, uint64_t unmeasured_ns, bool partial)
{
	if (!row->seen.processes)
		return;
	row->seen.measured_ppm = (struct memwatch_value){
		.value = ALL_PPM,
		.parts = 1,
		.status = MEMWATCH_STATUS_OK,
	};
	if (partial && unmeasured_ns) {
		mark_sums(row, mark_multiplexed);
		row->seen.measured_ppm.value = share_ppm(row->seen.cpu_time_ns.value,
							 unmeasured_ns);
		row->seen.measured_ppm.status = MEMWATCH_STATUS_MULTIPLEXED;
	} else if (partial) {
		mark_sums(row, mw_value_mark_lower_bound);
		row->seen.measured_ppm.value = 0;
		row->seen.measured_ppm.status = MEMWATCH_STATUS_UNAVAILABLE;
	}
}

bool mw_row_lacks_time(const struct memwatch_process *process, uint64_t begin_ns)
{
	return process->flags & MEMWATCH_PROCESS_PARTIAL &&
	       (process->flags & MEMWATCH_PROCESS_FREED || process->alloc_time_ns >= begin_ns);
}
