// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Fuzzes the tracker with records of assignments in any order, and asks it about what it
 * should know. Of one RMID at most one assignment may be live.
 */
#include <stdlib.h>

#include <memwatch/tracker.h>

#include "fuzz.h"
#include "records.h"

static void check_tracker(const struct memwatch_tracker *tracker)
{
	const struct memwatch_process *process, *found;
	size_t position = 0, count = 0;
	MEMWATCH_OPTS(memwatch_tracker_stats, stats);

	memwatch_tracker_get_stats(tracker, &stats);
	while (memwatch_tracker_next(tracker, &position, &process)) {
		count++;
		if (memwatch_tracker_lookup(tracker, process->rmid, process->generation, &found) ||
		    found != process || process->comm[MEMWATCH_COMM_LEN - 1])
			abort();
		/* RMID 0 has many owners at a time. */
		if (!(process->flags & MEMWATCH_PROCESS_FREED) && process->rmid &&
		    (memwatch_tracker_owner(tracker, process->rmid, ~0ULL, &found) ||
		     found != process))
			abort();
	}
	if (count != stats.live + stats.freed || count > 32 || stats.pending > 64)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	MEMWATCH_OPTS(memwatch_tracker_opts, opts, .pending_max = 64, .processes_max = 32);
	struct input input = { data, size, 1000000000 };
	const struct memwatch_process *process;
	struct memwatch_tracker *tracker;
	struct memwatch_ctx *ctx;
	union any_record record;

	if (memwatch_ctx_new(NULL, &ctx) || memwatch_tracker_new(ctx, &opts, &tracker))
		abort();
	while (take_record(&input, &record)) {
		memwatch_tracker_feed(tracker, &record.h);
		memwatch_tracker_lookup(tracker, record.rmid.rmid, record.rmid.generation,
					&process);
		if (record.h.cpu == 1)
			memwatch_tracker_advance(tracker, record.h.time_ns);
		if (record.h.cpu == 2)
			memwatch_tracker_retire(tracker, record.h.time_ns / 2);
		if (record.h.cpu == 3)
			check_tracker(tracker);
	}
	memwatch_tracker_advance(tracker, ~0ULL);
	check_tracker(tracker);
	memwatch_tracker_unref(tracker);
	memwatch_ctx_unref(ctx);
	return 0;
}
