// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Rows of processes that had an RMID for only a part of the time for which they ran: what is
 * said about their sums, and how much of the time is said to be measured.
 */
#include <stdint.h>

#include <memwatch/slots.h>
#include <memwatch/summary.h>

#include "../../selftests/tap.h"

#define MS    1000000ULL
#define SHARE 1000000ULL

static struct memwatch_ctx *ctx;
static struct memwatch_slots *slots;

/* An allocation of RMID 1 to process 700, or its end. */
static void feed_rmid(uint16_t type, uint64_t time_ns, uint32_t generation, uint32_t reason,
		      uint64_t unmeasured_ns)
{
	struct memwatch_record_rmid r = {
		.h = { .time_ns = time_ns, .type = type, .size = sizeof(r) },
		.rmid = 1,
		.generation = generation,
		.tgid = 700,
		.alloc_time_ns = time_ns,
		.cgroup_id = 9,
		.reason = reason,
		.unmeasured_ns = unmeasured_ns,
	};

	memwatch_slots_feed(slots, &r.h);
}

/* The process runs for all of a millisecond. */
static void feed_run(uint64_t end, uint32_t generation)
{
	struct memwatch_record_sample s = {
		.h = { .time_ns = end, .type = MEMWATCH_RECORD_SAMPLE, .size = sizeof(s) },
		.rmid = 1,
		.generation = generation,
		.begin_ns = end - MS,
		.run_ns = MS,
		.counter = { 1000 },
		.status = { MEMWATCH_STATUS_OK },
		.running_ppm = 1000000,
	};

	memwatch_slots_feed(slots, &s.h);
}

/* It gets an RMID at 10 ms; it is taken at 12 ms and given back at 20 ms, for 2 ms more. */
static void feed_turns(uint32_t first, uint64_t before, uint64_t between)
{
	MEMWATCH_OPTS(memwatch_slots_opts, opts, .window = 64);

	memwatch_slots_unref(slots);
	memwatch_slots_new(ctx, NULL, &opts, &slots);
	feed_rmid(MEMWATCH_RECORD_RMID_ALLOC, 10 * MS, 1, first, before);
	feed_run(11 * MS, 1);
	feed_run(12 * MS, 1);
	feed_rmid(MEMWATCH_RECORD_RMID_FREE, 12 * MS, 1, MEMWATCH_REASON_REVOKED, before);
	feed_rmid(MEMWATCH_RECORD_RMID_ALLOC, 20 * MS, 2, MEMWATCH_REASON_PROMOTED, between);
	feed_run(21 * MS, 2);
	feed_run(22 * MS, 2);
	memwatch_slots_finish(slots);
}

/* The only row with a process, of a summary of slots from @from_ns on. */
/* Cycles of the row that sum_up() found last. */
static struct memwatch_value cycles;

static struct memwatch_summary_row sum_up(uint32_t by, uint64_t from_ns)
{
	MEMWATCH_OPTS(memwatch_summary_opts, opts, .by = by, .from_ns = from_ns);
	const struct memwatch_summary_row *row;
	struct memwatch_summary_row found = { 0 };
	struct memwatch_summary *summary;
	const struct memwatch_slot *slot;
	size_t position = 0;

	memwatch_summary_new(ctx, &opts, &summary);
	while (memwatch_slots_next(slots, &slot) == 1)
		memwatch_summary_feed(summary, slot);
	while (memwatch_summary_next(summary, &position, &row))
		if (row->processes) {
			found = *row;
			cycles = *memwatch_summary_counter_at(row, MEMWATCH_COUNTER_CYCLES);
		}
	memwatch_summary_unref(summary);
	return found;
}

static void check_share(const struct memwatch_summary_row *row, uint64_t ppm, uint8_t status,
			const char *who)
{
	tap_eq(row->measured_ppm.value, ppm, "the share of %s", who);
	tap_eq(row->measured_ppm.status, status, "the status of the share of %s", who);
}

static void test_turns(void)
{
	struct memwatch_summary_row row;

	feed_turns(MEMWATCH_REASON_FORK, 0, 12 * MS);
	row = sum_up(MEMWATCH_BY_PROCESS, 0);
	check_share(&row, SHARE / 4, MEMWATCH_STATUS_MULTIPLEXED,
		    "a process that lost its RMID for a time");
	tap_eq(row.cpu_time_ns.value, 4 * MS, "what was measured is not scaled up");
	tap_eq(row.cpu_time_ns.status, MEMWATCH_STATUS_MULTIPLEXED, "CPU time is multiplexed");
	tap_eq(cycles.status, MEMWATCH_STATUS_MULTIPLEXED, "cycles are multiplexed");

	feed_turns(MEMWATCH_REASON_PROMOTED, 4 * MS, 8 * MS);
	row = sum_up(MEMWATCH_BY_CGROUP, 0);
	check_share(&row, SHARE / 4, MEMWATCH_STATUS_MULTIPLEXED,
		    "a cgroup whose process waited twice");

	feed_turns(MEMWATCH_REASON_PROMOTED, 100 * MS, 2 * MS);
	row = sum_up(MEMWATCH_BY_PROCESS, 20 * MS);
	check_share(&row, SHARE / 2, MEMWATCH_STATUS_MULTIPLEXED,
		    "a summary that begins when the process got its second RMID");
}

/* As in an interval of top. */
static void test_later(void)
{
	struct memwatch_summary_row row;

	feed_turns(MEMWATCH_REASON_FORK, 0, 12 * MS);
	row = sum_up(MEMWATCH_BY_PROCESS, 21 * MS);
	check_share(&row, SHARE, MEMWATCH_STATUS_OK, "the time after a process got its RMID");
	tap_eq(row.cpu_time_ns.status, MEMWATCH_STATUS_OK,
	       "sums of the time after a process got its RMID are ok");
}

static void test_unknown(void)
{
	struct memwatch_summary_row row;

	feed_turns(MEMWATCH_REASON_FORK, 0, 0);
	row = sum_up(MEMWATCH_BY_PROCESS, 0);
	tap_eq(row.measured_ppm.status, MEMWATCH_STATUS_UNAVAILABLE,
	       "a share is unavailable if it is not known for how long the process waited");
	tap_eq(row.cpu_time_ns.status, MEMWATCH_STATUS_ESTIMATED,
	       "sums are lower bounds if it is not known for how long the process waited");
}

static void test_all(void)
{
	struct memwatch_summary_row row;

	memwatch_slots_unref(slots);
	memwatch_slots_new(ctx, NULL, NULL, &slots);
	feed_rmid(MEMWATCH_RECORD_RMID_ALLOC, 10 * MS, 1, MEMWATCH_REASON_FORK, 0);
	feed_run(11 * MS, 1);
	memwatch_slots_finish(slots);
	row = sum_up(MEMWATCH_BY_PROCESS, 0);
	check_share(&row, SHARE, MEMWATCH_STATUS_OK, "a process that always had its RMID");
	tap_eq(row.cpu_time_ns.status, MEMWATCH_STATUS_OK, "its CPU time is ok");
}

int main(void)
{
	tap_start();
	memwatch_ctx_new(NULL, &ctx);
	test_turns();
	test_later();
	test_unknown();
	test_all();
	memwatch_slots_unref(slots);
	memwatch_ctx_unref(ctx);
	return tap_done();
}
