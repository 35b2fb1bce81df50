// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What a hostile stream costs in the tracker, the slots and the summary.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <memwatch/slots.h>
#include <memwatch/summary.h>
#include <memwatch/tracker.h>

#include "account/slot-entry.h"
#include "cost-kit.h"

#define MS  1000000ULL
#define MIB (1ULL << 20)

/* Of the sanitizer that the tests are built with; not every compiler has its header. */
size_t __sanitizer_get_current_allocated_bytes(void);

static struct memwatch_ctx *ctx;

static struct memwatch_tracker *new_tracker(void)
{
	struct memwatch_tracker *tracker;

	if (memwatch_tracker_new(ctx, NULL, &tracker))
		abort();
	return tracker;
}

static void queue_alloc(struct memwatch_tracker *tracker, uint32_t rmid, uint32_t generation,
			uint64_t time_ns)
{
	struct memwatch_process process = {
		.sz = sizeof(process),
		.rmid = rmid,
		.generation = generation,
		.tgid = generation,
		.alloc_time_ns = time_ns,
	};

	memwatch_tracker_alloc(tracker, &process);
}

/* ---------------------------------------------------------------- tracker */

/* Each allocation is older than the ones before it. */
static void descend_generations(uint32_t n)
{
	struct memwatch_tracker *tracker = new_tracker();

	for (uint32_t i = 0; i < n; i++) {
		queue_alloc(tracker, 1, n - i, i);
		memwatch_tracker_advance(tracker, i);
	}
	memwatch_tracker_unref(tracker);
}

/* Looks for processes of which there is nothing, while many changes are queued. */
static void look_up_unknown(uint32_t n)
{
	struct memwatch_tracker *tracker = new_tracker();
	const struct memwatch_process *process;

	for (uint32_t i = 0; i < n; i++)
		queue_alloc(tracker, 1 + i, 1, ~0ULL - i);
	for (uint32_t i = 0; i < n; i++)
		memwatch_tracker_lookup(tracker, 1 + i, 2, &process);
	memwatch_tracker_unref(tracker);
}

/* All allocations in the queue are those of one generation, and the last one comes first. */
static void repeat_alloc(uint32_t n)
{
	struct memwatch_tracker *tracker = new_tracker();

	for (uint32_t i = 0; i < n; i++)
		queue_alloc(tracker, 1, 1, n - i);
	memwatch_tracker_advance(tracker, ~0ULL);
	memwatch_tracker_unref(tracker);
}

/* Keys with one and the same hash, for a hash without a seed: that of earlier versions. */
static void choose_keys(uint32_t n)
{
	uint64_t first = cost_inverse(0x9e3779b97f4a7c15ULL),
		 second = cost_inverse(0xff51afd7ed558ccdULL);
	struct memwatch_tracker *tracker = new_tracker();

	for (uint32_t i = 0; i < n; i++) {
		uint64_t hash = 7ULL << 32 | i;
		uint64_t key = (hash * second ^ 0x632be59bd9b4e019ULL) * first;

		queue_alloc(tracker, (uint32_t)(key >> 32), (uint32_t)key, i);
		memwatch_tracker_advance(tracker, i);
	}
	memwatch_tracker_unref(tracker);
}

static void test_tracker(void)
{
	struct memwatch_tracker *tracker = new_tracker();
	MEMWATCH_OPTS(memwatch_tracker_stats, stats);

	for (uint32_t i = 0; i < 1000; i++)
		queue_alloc(tracker, 1, 1000 - i, i);
	memwatch_tracker_advance(tracker, 1000);
	memwatch_tracker_get_stats(tracker, &stats);
	tap_ok(stats.live == 1, "of one RMID only the newest assignment is live (%llu are)",
	       (unsigned long long)stats.live);
	memwatch_tracker_unref(tracker);
	expect_proportional(descend_generations, 15000, "tracker: generations that descend");
	expect_proportional(look_up_unknown, 15000, "tracker: unknown processes");
	expect_proportional(repeat_alloc, 15000, "tracker: one allocation again and again");
	expect_proportional(choose_keys, 15000, "tracker: keys that collided");
}

/* ------------------------------------------------------------------ slots */

static struct memwatch_slots *new_slots(uint32_t entries_max)
{
	MEMWATCH_OPTS(memwatch_slots_opts, opts, .entries_max = entries_max);
	struct memwatch_slots *slots;

	if (memwatch_slots_new(ctx, NULL, &opts, &slots))
		abort();
	return slots;
}

static int feed_sample(struct memwatch_slots *slots, uint64_t begin_ns, uint64_t end_ns,
		       uint32_t rmid, uint64_t run_ns)
{
	struct memwatch_record_sample s = {
		.h = { .time_ns = end_ns, .type = MEMWATCH_RECORD_SAMPLE, .size = sizeof(s) },
		.rmid = rmid,
		.generation = 1,
		.begin_ns = begin_ns,
		.run_ns = run_ns,
	};

	return memwatch_slots_feed(slots, &s.h);
}

static uint64_t drained_to; /* the end of the slot that was drained last */

static uint64_t drain_slots(struct memwatch_slots *slots, struct memwatch_summary *summary)
{
	const struct memwatch_slot *slot;
	uint64_t run_ns = 0;

	while (memwatch_slots_next(slots, &slot) == 1) {
		for (uint32_t i = 0; i < slot->nr_entries; i++)
			run_ns += memwatch_slot_entry_at(slot, i)->cpu_time_ns.value;
		drained_to = slot->end_ns;
		if (summary)
			memwatch_summary_feed(summary, slot);
	}
	return run_ns;
}

static void test_slot_memory(void)
{
	struct memwatch_slots *slots = new_slots(10000);
	MEMWATCH_OPTS(memwatch_summary_opts, opts, .by = MEMWATCH_BY_PROCESS);
	MEMWATCH_OPTS(memwatch_slots_stats, stats);
	const struct memwatch_summary_row *row, *total;
	size_t before = __sanitizer_get_current_allocated_bytes(), bytes, position = 0;
	struct memwatch_summary *summary;
	uint64_t others = 0, sum = 0;

	if (memwatch_summary_new(ctx, &opts, &summary))
		abort();
	for (uint32_t i = 0; i < 50000; i++)
		feed_sample(slots, 0, 40 * MS, 1 + i, 1000);
	bytes = __sanitizer_get_current_allocated_bytes() - before;
	tap_ok(bytes < 16 * MIB, "slots: 50000 samples of 40 slots each need %zu KiB of memory",
	       bytes >> 10);
	memwatch_slots_finish(slots);
	tap_eq(drain_slots(slots, summary), 50000 * 1000ULL,
	       "slots: what finds no entry of its own is still in the sum");
	memwatch_slots_get_stats(slots, &stats);
	tap_ok(stats.other > 0, "slots: measurements without an entry of their own are counted");
	memwatch_summary_sort(summary, MEMWATCH_SORT_NONE, false);
	while (memwatch_summary_next(summary, &position, &row)) {
		others += !!(row->flags & MEMWATCH_ROW_OTHER);
		sum += row->cpu_time_ns.value;
	}
	memwatch_summary_get_total(summary, &total);
	tap_eq(others, 1, "summary: what had no entry in its slot is in the row of all others");
	tap_eq(sum, total->cpu_time_ns.value, "summary: with this row, rows add up to the total");
	memwatch_summary_unref(summary);
	memwatch_slots_unref(slots);
}

/* One slot has many entries; each of the many slots that follow has one. */
static void use_large_slot_again(uint32_t n)
{
	struct memwatch_slots *slots = new_slots(0);

	for (uint32_t i = 0; i < n; i++)
		feed_sample(slots, 0, 0, 1 + i, 1);
	for (uint32_t i = 1; i < n; i++) {
		feed_sample(slots, i * MS, i * MS, 1, 1);
		drain_slots(slots, NULL);
	}
	memwatch_slots_unref(slots);
}

/* Each sample is from the first moment to the last one, and alone in its slot. */
static void jump_in_time(uint32_t n)
{
	struct memwatch_slots *slots = new_slots(0);

	for (uint32_t i = 0; i < n; i++) {
		feed_sample(slots, 0, ~0ULL / n * i, 1, 1);
		drain_slots(slots, NULL);
	}
	memwatch_slots_unref(slots);
}

/* The slot before 2^64 ns is delivered, before and after memwatch_slots_finish(). */
static void test_last_slot(void)
{
	struct memwatch_slots *slots = new_slots(0);
	uint64_t run_ns;

	feed_sample(slots, ~0ULL - 5, ~0ULL, 1, 7);
	memwatch_slots_finish(slots);
	run_ns = drain_slots(slots, NULL);
	tap_eq(run_ns, 7, "slots: the last slot before 2^64 ns is delivered");
	tap_eq(drained_to, ~0ULL, "slots: it ends at the last moment");
	feed_sample(slots, ~0ULL, ~0ULL, 1, 5);
	feed_sample(slots, ~0ULL - 3, ~0ULL, 1, 6);
	memwatch_slots_finish(slots);
	run_ns = drain_slots(slots, NULL);
	tap_eq(run_ns, 11, "slots: after the end, parts of the last slot are late and not lost");
	memwatch_slots_unref(slots);
}

/* --------------------------------------------------------------- summaries */

/* @n processes, one after the other, of 100 RMIDs and 4 cgroups. */
static void feed_processes(struct memwatch_summary *summary, uint32_t n)
{
	struct memwatch_process process = { .cgroup_id = 1 };
	struct mw_slot_entry entry = { .seen = { .cpu = MEMWATCH_CPU_ANY, .samples = 1 } };
	struct mw_slot_given slot = { .seen = { .nr_entries = 1 }, .entries = &entry };

	entry.seen.process = &process;
	for (uint32_t i = 0; i < n; i++) {
		slot.seen.begin_ns = i * MS;
		slot.seen.end_ns = slot.seen.begin_ns + MS;
		entry.seen.rmid = process.rmid = 1 + i % 100;
		entry.seen.generation = process.generation = 1 + i / 100;
		process.tgid = 1000 + i;
		process.cgroup_id = 1 + entry.seen.rmid % 4;
		memwatch_summary_feed(summary, &slot.seen);
		/* It runs again later, and the one before it was not written back yet. */
		memwatch_summary_feed(summary, &slot.seen);
		if (entry.seen.generation > 1) {
			entry.seen.generation--;
			memwatch_summary_feed(summary, &slot.seen);
		}
	}
}

static void test_cgroup_memory(void)
{
	MEMWATCH_OPTS(memwatch_summary_opts, opts, .by = MEMWATCH_BY_CGROUP);
	size_t before = __sanitizer_get_current_allocated_bytes(), bytes, position = 0;
	const struct memwatch_summary_row *row;
	struct memwatch_summary *summary;
	uint64_t processes = 0, rmids = 0;

	if (memwatch_summary_new(ctx, &opts, &summary))
		abort();
	feed_processes(summary, 200000);
	bytes = __sanitizer_get_current_allocated_bytes() - before;
	tap_ok(bytes < 64 << 10, "summary: 200000 processes of 4 cgroups need %zu bytes", bytes);
	while (memwatch_summary_next(summary, &position, &row)) {
		processes += row->processes;
		rmids += row->nr_rmids;
	}
	tap_eq(processes, 200000, "summary: every process of a cgroup is counted once");
	tap_eq(rmids, 100, "summary: every RMID is listed once");
	memwatch_summary_unref(summary);
}

static void test_member_limit(void)
{
	MEMWATCH_OPTS(memwatch_summary_opts, opts, .by = MEMWATCH_BY_CGROUP, .rmids_max = 10);
	const struct memwatch_summary_row *row;
	struct memwatch_summary *summary;
	size_t position = 0;
	uint64_t rmids = 0;

	if (memwatch_summary_new(ctx, &opts, &summary))
		abort();
	feed_processes(summary, 1000);
	while (memwatch_summary_next(summary, &position, &row))
		rmids += row->nr_rmids;
	tap_eq(rmids, 10, "summary: no more than rmids_max RMIDs are listed");
	memwatch_summary_unref(summary);
}

/* A table that was large once is emptied for each interval that top shows. */
static void reset_large_summary(uint32_t n)
{
	struct mw_slot_entry entry = { .seen = { .cpu = MEMWATCH_CPU_ANY, .generation = 1 } };
	struct mw_slot_given slot = { .seen = { .nr_entries = 1, .end_ns = MS },
				      .entries = &entry };
	struct memwatch_summary *summary;

	/* What was read of all these RMIDs holds on. */
	entry.level = (struct mw_slot_level){ .status = MEMWATCH_STATUS_OK, .read = true };
	if (memwatch_summary_new(ctx, NULL, &summary))
		abort();
	for (entry.seen.rmid = 1; entry.seen.rmid < n; entry.seen.rmid++)
		memwatch_summary_feed(summary, &slot.seen);
	for (uint32_t i = 0; i < n; i++) {
		memwatch_summary_reset(summary);
		memwatch_summary_feed(summary, &slot.seen);
	}
	memwatch_summary_unref(summary);
}

int main(void)
{
	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_tracker();
	test_slot_memory();
	expect_proportional(use_large_slot_again, 15000, "slots: a slot that was large once");
	expect_proportional(jump_in_time, 3000, "slots: samples of all of time");
	test_last_slot();
	test_cgroup_memory();
	test_member_limit();
	expect_proportional(reset_large_summary, 15000, "summary: a table that was large once");
	memwatch_ctx_unref(ctx);
	return tap_done();
}
