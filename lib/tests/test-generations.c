// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Records that were made without the module: all processes have RMID 0, and a generation above 0
 * says which process it is. Generations do not ascend, because each CPU gives its own.
 */
#include <stdint.h>

#include <memwatch/slots.h>
#include <memwatch/summary.h>

#include "../../selftests/tap.h"

#define MS	  1000000ULL
#define PROCESSES 300U

static struct memwatch_ctx *ctx;

/* Process number @i: some generations are far apart. */
static uint32_t generation_of(uint32_t i)
{
	return 1 + i * 7919 % 100003;
}

static void feed_process(struct memwatch_slots *slots, uint32_t i)
{
	struct memwatch_record_rmid alloc = {
		.h = { 10 * MS, MEMWATCH_RECORD_RMID_ALLOC, sizeof(alloc), 0, 0 },
		.generation = generation_of(i),
		.tgid = 1000 + i,
		.start_time_ns = i,
		.alloc_time_ns = 10 * MS,
		.cgroup_id = 5 + i % 2,
		.reason = MEMWATCH_REASON_FORK,
	};

	memwatch_slots_feed(slots, &alloc.h);
}

static void feed_run(struct memwatch_slots *slots, uint64_t end, uint32_t generation)
{
	struct memwatch_record_sample s = {
		.h = { end, MEMWATCH_RECORD_SAMPLE, sizeof(s), 0, 0 },
		.generation = generation,
		.begin_ns = end - MS,
		.run_ns = MS / 1000,
		.running_ppm = 1000000,
	};

	memwatch_slots_feed(slots, &s.h);
}

/* All processes run in each of two milliseconds, and so does the kernel. */
static struct memwatch_slots *make_slots(void)
{
	struct memwatch_slots *slots;

	memwatch_slots_new(ctx, NULL, NULL, &slots);
	for (uint32_t i = 0; i < PROCESSES; i++)
		feed_process(slots, i);
	for (uint64_t end = 11 * MS; end <= 12 * MS; end += MS) {
		feed_run(slots, end, 0);
		for (uint32_t i = 0; i < PROCESSES; i++)
			feed_run(slots, end, generation_of(i));
	}
	memwatch_slots_finish(slots);
	return slots;
}

static struct memwatch_summary *sum_up(uint32_t by)
{
	MEMWATCH_OPTS(memwatch_summary_opts, opts, .by = by);
	struct memwatch_slots *slots = make_slots();
	struct memwatch_summary *summary;
	const struct memwatch_slot *slot;

	memwatch_summary_new(ctx, &opts, &summary);
	while (memwatch_slots_next(slots, &slot) == 1)
		memwatch_summary_feed(summary, slot);
	memwatch_slots_unref(slots);
	return summary;
}

static void test_processes(void)
{
	struct memwatch_summary *summary = sum_up(MEMWATCH_BY_PROCESS);
	const struct memwatch_summary_row *row;
	uint64_t rows = 0, unassigned = 0, wrong = 0;
	size_t position = 0;

	while (memwatch_summary_next(summary, &position, &row)) {
		uint32_t i = row->tgid - 1000;

		if (row->flags & MEMWATCH_ROW_UNASSIGNED) {
			unassigned++;
			continue;
		}
		rows++;
		wrong += i >= PROCESSES || row->start_time_ns != i || row->nr_rmids != 1 ||
			 memwatch_summary_rmid_at(row, 0)->generation != generation_of(i) ||
			 row->cpu_time_ns.value != 2 * MS / 1000;
	}
	tap_eq(rows, PROCESSES, "each process is one row");
	tap_eq(wrong, 0, "the row has its generation and its time");
	tap_eq(unassigned, 1, "generation 0 is the row of what is unassigned");
	memwatch_summary_unref(summary);
}

static void test_cgroups(void)
{
	struct memwatch_summary *summary = sum_up(MEMWATCH_BY_CGROUP);
	const struct memwatch_summary_row *row;
	uint64_t rows = 0, processes = 0, rmids = 0;
	size_t position = 0;

	while (memwatch_summary_next(summary, &position, &row)) {
		if (!row->cgroup_id)
			continue;
		rows++;
		processes += row->processes;
		rmids += row->nr_rmids;
	}
	tap_eq(rows, 2, "each cgroup is one row");
	tap_eq(processes, PROCESSES, "each process of a cgroup is counted once");
	tap_eq(rmids, 0, "a cgroup does not list processes that have no RMID");
	memwatch_summary_unref(summary);
}

int main(void)
{
	tap_start();
	memwatch_ctx_new(NULL, &ctx);
	test_processes();
	test_cgroups();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
