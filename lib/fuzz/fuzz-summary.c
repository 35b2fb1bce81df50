// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Fuzzes summaries of all kinds with the slots of any records. The first byte of the input
 * chooses what makes a row. Rows must add up to the total and are limited, whatever comes.
 */
#include <stdlib.h>

#include <memwatch/slots.h>
#include <memwatch/summary.h>

#include "fuzz.h"
#include "records.h"

#define ROWS_MAX  20
#define RMIDS_MAX 30

/* Each RMID is there once, but of RMID 0 each generation. */
static bool is_same_rmid(const struct memwatch_summary_rmid *a,
			 const struct memwatch_summary_rmid *b)
{
	return a->rmid == b->rmid && (a->rmid || a->generation == b->generation);
}

static void check_summary(struct memwatch_summary *summary, unsigned int key)
{
	const struct memwatch_summary_row *row, *total;
	uint64_t run_ns = 0, rmids = 0;
	size_t position = 0;
	bool wraps = false;

	if (memwatch_summary_sort(summary, key, key % 2))
		return;
	while (memwatch_summary_next(summary, &position, &row)) {
		wraps |= __builtin_add_overflow(run_ns, row->cpu_time_ns.value, &run_ns);
		rmids += row->nr_rmids;
		for (uint32_t i = 1; i < row->nr_rmids; i++)
			if (is_same_rmid(memwatch_summary_rmid_at(row, i),
					 memwatch_summary_rmid_at(row, i - 1)))
				abort();
	}
	memwatch_summary_get_total(summary, &total);
	if (position > ROWS_MAX + 1 || rmids > RMIDS_MAX)
		abort();
	/* Sums do not wrap. */
	if (!wraps && total->cpu_time_ns.value != UINT64_MAX && run_ns != total->cpu_time_ns.value)
		abort();
}

static void drain_slots(struct memwatch_slots *slots, struct memwatch_summary *summary)
{
	const struct memwatch_slot *slot;

	while (memwatch_slots_next(slots, &slot) == 1)
		if (memwatch_summary_feed(summary, slot) < 0)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t by = size ? data[0] % 5 : 0;
	MEMWATCH_OPTS(memwatch_slots_opts, opts, .window = 3, .entries_max = 50,
		      .flags = by == MEMWATCH_BY_CPU ? MEMWATCH_SLOTS_PER_CPU : 0);
	MEMWATCH_OPTS(memwatch_summary_opts, summary_opts, .by = by, .rows_max = ROWS_MAX,
		      .rmids_max = RMIDS_MAX);
	struct input input = { data + !!size, size - !!size, 1000000000 };
	struct memwatch_summary *summary;
	struct memwatch_slots *slots;
	struct memwatch_ctx *ctx;
	union any_record record;

	if (memwatch_ctx_new(NULL, &ctx) || memwatch_slots_new(ctx, NULL, &opts, &slots) ||
	    memwatch_summary_new(ctx, &summary_opts, &summary))
		abort();
	while (take_record(&input, &record)) {
		memwatch_slots_feed(slots, &record.h);
		drain_slots(slots, summary);
		if (record.h.cpu == 3)
			check_summary(summary, record.sample.rmid % 16);
		if (record.h.cpu == 2 && record.h.time_ns % 11 == 0)
			memwatch_summary_reset(summary);
	}
	memwatch_slots_finish(slots);
	drain_slots(slots, summary);
	check_summary(summary, MEMWATCH_SORT_CPU_TIME);
	memwatch_summary_unref(summary);
	memwatch_slots_unref(slots);
	memwatch_ctx_unref(ctx);
	return 0;
}
