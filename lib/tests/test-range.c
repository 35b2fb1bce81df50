// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A summary of a range of time has what happened in the range, also of a CPU that was idle for
 * longer: its record comes when it is busy again and is about the whole time.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <memwatch/slots.h>
#include <memwatch/summary.h>

#include "../../selftests/tap.h"

#define MS 1000000ULL

static struct memwatch_ctx *ctx;

static void feed_sample(struct memwatch_slots *slots, unsigned int cpu, uint64_t begin,
			uint64_t end, uint64_t run)
{
	struct memwatch_record_sample s = {
		.h = { .time_ns = end, .type = MEMWATCH_RECORD_SAMPLE, .size = sizeof(s) },
		.begin_ns = begin,
		.run_ns = run,
		.counter = { run },
		.status = { MEMWATCH_STATUS_OK },
		.running_ppm = 1000000,
	};

	s.h.cpu = (uint16_t)cpu;
	memwatch_slots_feed(slots, &s.h);
}

/* The time of CPU 1 between two times. CPU 0 ticks for 12 s; CPU 1 is idle from 5.5 s to 9.5 s. */
static uint64_t time_between(uint64_t from_ns, uint64_t to_ns, uint64_t *cycles)
{
	MEMWATCH_OPTS(memwatch_slots_opts, slots_opts, .flags = MEMWATCH_SLOTS_PER_CPU,
		      .from_ns = from_ns, .to_ns = to_ns);
	MEMWATCH_OPTS(memwatch_summary_opts, opts, .by = MEMWATCH_BY_CPU, .from_ns = from_ns,
		      .to_ns = to_ns);
	const struct memwatch_summary_row *row;
	struct memwatch_summary *summary;
	const struct memwatch_slot *slot;
	struct memwatch_slots *slots;
	size_t position = 0;
	uint64_t time = 0;

	memwatch_slots_new(ctx, NULL, &slots_opts, &slots);
	memwatch_summary_new(ctx, &opts, &summary);
	for (uint64_t t = 0; t < 12000; t += 10) {
		feed_sample(slots, 0, t * MS, (t + 10) * MS, 10 * MS);
		if (t < 5500 || t >= 9500)
			feed_sample(slots, 1, t * MS, (t + 10) * MS, 10 * MS);
		else if (t == 9490)
			feed_sample(slots, 1, 5500 * MS, 9500 * MS, 4000 * MS);
		while (memwatch_slots_next(slots, &slot) == 1)
			memwatch_summary_feed(summary, slot);
	}
	memwatch_slots_finish(slots);
	while (memwatch_slots_next(slots, &slot) == 1)
		memwatch_summary_feed(summary, slot);
	while (memwatch_summary_next(summary, &position, &row) == 1) {
		if (row->cpu != 1)
			continue;
		time = row->cpu_time_ns.value;
		*cycles = memwatch_summary_counter_at(row, 0)->value;
	}
	memwatch_summary_unref(summary);
	memwatch_slots_unref(slots);
	return time;
}

static void check_range(uint64_t from_ms, uint64_t to_ms, const char *what)
{
	uint64_t cycles = 0, time = time_between(from_ms * MS, to_ms * MS, &cycles);

	tap_eq(time, (to_ms - from_ms) * MS, "a range %s has its time", what);
	tap_eq(cycles, (to_ms - from_ms) * MS, "a range %s has its cycles", what);
}

int main(void)
{
	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	check_range(1000, 2000, "before the CPU was idle");
	check_range(5000, 6000, "in which the CPU becomes idle");
	check_range(6000, 7000, "in which the CPU is idle");
	check_range(9000, 10000, "in which the CPU becomes busy");
	check_range(5000, 10000, "that contains the time in which the CPU is idle");
	check_range(10000, 11000, "after the CPU was idle");
	memwatch_ctx_unref(ctx);
	return tap_done();
}
