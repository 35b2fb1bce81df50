// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Slots and summaries. Their main property is conservation: measurements are split, but the
 * sum of the parts is what was fed, to the last unit.
 */
#include <errno.h>
#include <string.h>

#include <memwatch/slots.h>
#include <memwatch/stream.h>
#include <memwatch/summary.h>

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"

#define MS 1000000ULL

static struct memwatch_ctx *ctx;
static struct memwatch_slots *slots;

static void slots_restart(uint32_t window, uint32_t flags)
{
	MEMWATCH_OPTS(memwatch_slots_opts, opts, .window = window, .flags = flags);

	memwatch_slots_unref(slots);
	memwatch_slots_new(ctx, NULL, &opts, &slots);
}

static int feed_sample(uint64_t begin, uint64_t end, uint32_t rmid, uint64_t run, uint64_t cycles)
{
	struct memwatch_record_sample s = {
		.h = { .time_ns = end, .type = MEMWATCH_RECORD_SAMPLE, .size = sizeof(s) },
		.rmid = rmid,
		.generation = rmid ? 1 : 0,
		.begin_ns = begin,
		.run_ns = run,
		.counter = { cycles },
		.status = { MEMWATCH_STATUS_OK },
		.running_ppm = 1000000,
	};

	return memwatch_slots_feed(slots, &s.h);
}

static int feed_rmid_for(uint16_t type, uint32_t rmid, uint64_t time_ns, const char *comm,
			 uint32_t reason)
{
	struct memwatch_record_rmid r = {
		.h = { .time_ns = time_ns, .type = type, .size = sizeof(r) },
		.rmid = rmid,
		.generation = 1,
		.tgid = 500 + rmid,
		.alloc_time_ns = time_ns,
		.cgroup_id = 9,
		.reason = reason,
	};

	strncpy(r.comm, comm, sizeof(r.comm) - 1);
	return memwatch_slots_feed(slots, &r.h);
}

static int feed_rmid(uint16_t type, uint32_t rmid, uint64_t time_ns, const char *comm)
{
	return feed_rmid_for(type, rmid, time_ns, comm, MEMWATCH_REASON_FORK);
}

static int feed_rdt(uint64_t time_ns, uint32_t domain, uint64_t occupancy, uint64_t total)
{
	struct memwatch_record_rdt r = {
		.h = { .time_ns = time_ns, .type = MEMWATCH_RECORD_RDT, .size = sizeof(r) },
		.rmid = 1,
		.generation = 1,
		.domain = domain,
		.status = { MEMWATCH_STATUS_OK, MEMWATCH_STATUS_OK, MEMWATCH_STATUS_UNAVAILABLE },
		.value = { occupancy, total, 0 },
	};

	return memwatch_slots_feed(slots, &r.h);
}

static struct memwatch_slots_stats stats(void)
{
	MEMWATCH_OPTS(memwatch_slots_stats, now);

	memwatch_slots_get_stats(slots, &now);
	return now;
}

static void test_split(void)
{
	static const uint64_t cycles[] = { 3, 10, 1 }; /* 0.7..1 | 1..2 | 2..2.1 of 14 */
	const struct memwatch_slot *slot;

	slots_restart(4, 0);
	feed_sample(100 * MS + 700000, 102 * MS + 100000, 5, 1400, 14);
	memwatch_slots_finish(slots);
	for (unsigned int i = 0; i < 3; i++) {
		if (memwatch_slots_next(slots, &slot) != 1)
			break;
		tap_eq(slot->begin_ns, (100 + i) * MS, "part %u of a split sample: begin of slot",
		       i);
		tap_eq(slot->end_ns, (101 + i) * MS, "part %u of a split sample: end of slot", i);
		tap_eq(slot->nr_entries, 1, "part %u of a split sample: number of entries", i);
		tap_eq(memwatch_slot_entry_at(slot, 0)->rmid, 5, "part %u of a split sample: RMID",
		       i);
		tap_eq(memwatch_slot_counter_at(memwatch_slot_entry_at(slot, 0), 0)->value,
		       cycles[i], "part %u of a split sample: cycles", i);
		tap_eq(memwatch_slot_entry_at(slot, 0)->cpu_time_ns.value, cycles[i] * 100,
		       "part %u of a split sample: CPU time", i);
	}
	tap_eq(memwatch_slots_next(slots, &slot), 0, "a sample of three slots has three parts");
	tap_eq(stats().split, 1, "a split sample is counted");
	tap_eq(stats().late, 0, "a sample for open slots is not late");
	tap_eq(stats().unknown, 3, "entries without a known assignment are counted");
	slots_restart(4, 0);
	feed_sample(5 * MS, 6 * MS, 1, 10, 1);
	feed_sample(6 * MS, 6 * MS, 1, 7, 1);
	memwatch_slots_finish(slots);
	tap_eq(memwatch_slots_next(slots, &slot), 1, "a sample that ends with its slot is in it");
	tap_eq(slot->begin_ns, 5 * MS, "a sample that ends with its slot is in no later slot");
	tap_eq(memwatch_slot_entry_at(slot, 0)->cpu_time_ns.value, 10,
	       "a sample that ends with its slot is not split");
	tap_eq(memwatch_slots_next(slots, &slot), 1, "a sample without length is in a slot");
	tap_eq(slot->begin_ns, 6 * MS, "a sample without length is in the slot that begins there");
	tap_eq(memwatch_slot_entry_at(slot, 0)->cpu_time_ns.value, 7,
	       "a sample without length is not split");
}

/* The name of the first entry of the next slot. */
static const char *next_name(const struct memwatch_slot **slot)
{
	if (memwatch_slots_next(slots, slot) != 1 || !memwatch_slot_entry_at(*slot, 0)->process)
		return NULL;
	return memwatch_slot_entry_at(*slot, 0)->process->comm;
}

static void test_names(void)
{
	const struct memwatch_slot *slot;

	slots_restart(2, 0);
	feed_rmid(MEMWATCH_RECORD_RMID_ALLOC, 1, 10 * MS, "first");
	feed_sample(10 * MS, 10 * MS + 400000, 1, 5, 5);
	feed_rmid(MEMWATCH_RECORD_RMID_FREE, 1, 10 * MS + 500000, "first");
	/* The sample comes after the free, in the same slot and in the next one. */
	feed_sample(10 * MS + 400000, 11 * MS + 200000, 1, 8, 8);
	/* A late tick: the sample spans slots before the allocation. */
	feed_rmid(MEMWATCH_RECORD_RMID_ALLOC, 2, 13 * MS + 900000, "second");
	feed_sample(12 * MS, 14 * MS, 2, 10, 1);
	memwatch_slots_finish(slots);
	for (int i = 0; i < 2; i++)
		tap_str_eq(next_name(&slot), "first",
			   "a process is known after its free, in slot %d of its sample", i);
	tap_str_eq(next_name(&slot), "second",
		   "a process is known in slots of its sample before its allocation");
	tap_eq(slot->begin_ns, 12 * MS, "a sample that began before the allocation is split");
}

static void test_late(void)
{
	const struct memwatch_slot *slot;
	uint64_t run = 0;
	bool late = false;

	slots_restart(2, 0);
	feed_sample(10 * MS, 11 * MS, 1, 100, 0);
	feed_sample(19 * MS, 20 * MS, 1, 100, 0);
	feed_sample(10 * MS, 11 * MS, 3, 50, 0);
	/* Half of this sample is for slots that are still open. */
	feed_sample(17 * MS, 19 * MS, 3, 60, 0);
	memwatch_slots_finish(slots);
	while (memwatch_slots_next(slots, &slot) == 1) {
		for (uint32_t i = 0; i < slot->nr_entries; i++) {
			run += memwatch_slot_entry_at(slot, i)->cpu_time_ns.value;
			if (slot->flags & MEMWATCH_SLOT_LATE)
				late |= memwatch_slot_entry_at(slot, i)->rmid == 3 &&
					memwatch_slot_entry_at(slot, i)->cpu_time_ns.value == 80 &&
					slot->begin_ns == 10 * MS && slot->end_ns == 18 * MS;
		}
	}
	tap_ok(late, "parts for closed slots are in a late slot that spans them");
	tap_eq(run, 310, "late parts are not dropped");
	tap_eq(stats().late, 2, "late samples are counted");
	tap_eq(stats().late_run_ns, 80, "the CPU time of late parts is counted");
}

static void test_rdt(void)
{
	uint64_t total = 0, parts = 0, level = 0, later = 0;
	const struct memwatch_slot *slot;
	uint8_t status = MEMWATCH_STATUS_OK;

	slots_restart(32, 0);
	feed_rmid(MEMWATCH_RECORD_RMID_ALLOC, 1, 10 * MS, "x");
	feed_rdt(20 * MS, 0, 1000, 1003);
	feed_rdt(20 * MS + 1, 1, 500, 0);
	feed_rdt(20 * MS + 2, 0, 800, 1003);
	feed_rdt(30 * MS, 0, 700, 2003);
	memwatch_slots_finish(slots);
	while (memwatch_slots_next(slots, &slot) == 1) {
		const struct memwatch_slot_entry *entry = memwatch_slot_entry_at(slot, 0);

		total += memwatch_slot_rdt_at(entry, MEMWATCH_RDT_MBM_TOTAL)->value;
		parts += memwatch_slot_rdt_at(entry, MEMWATCH_RDT_MBM_TOTAL)->parts > 0;
		if (slot->begin_ns == 20 * MS)
			level = memwatch_slot_rdt_at(entry, MEMWATCH_RDT_OCCUPANCY)->value;
		if (slot->begin_ns == 30 * MS)
			later = memwatch_slot_rdt_at(entry, MEMWATCH_RDT_OCCUPANCY)->value;
		if (memwatch_slot_rdt_at(entry, MEMWATCH_RDT_MBM_LOCAL)->parts)
			status = memwatch_slot_rdt_at(entry, MEMWATCH_RDT_MBM_LOCAL)->status;
	}
	tap_eq(total, 2003, "bandwidth since the allocation adds up to the last reading");
	tap_eq(parts, 20, "bandwidth is split over all slots since the allocation");
	tap_eq(level, 1300, "occupancy is the sum of the last readings of all domains");
	tap_eq(later, 1200, "occupancy includes a domain that was not read in the slot");
	tap_eq(status, MEMWATCH_STATUS_UNAVAILABLE, "an event that is not measured is unavailable");
}

/* Residual occupancy is reported once, and is not a part of the occupancy. */
static void test_residue(void)
{
	struct memwatch_record_rdt r = {
		.h = { .time_ns = 10 * MS, .type = MEMWATCH_RECORD_RDT, .size = sizeof(r) },
		.rmid = 1,
		.generation = 1,
		.age_ns = 500 * MS,
		.value = { 4096 },
	};
	struct memwatch_value residue[3] = { 0 }, level = { 0 };
	const struct memwatch_slot *slot;

	memset(r.status, MEMWATCH_STATUS_FIRST, sizeof(r.status));
	for (int i = 0; i < 3; i++) {
		slots_restart(32, 0);
		if (i < 2)
			feed_rmid(MEMWATCH_RECORD_RMID_ALLOC, 1, 10 * MS, "x");
		if (!i) {
			memwatch_slots_feed(slots, &r.h);
			r.domain = 1;
			memwatch_slots_feed(slots, &r.h);
		}
		feed_rdt(20 * MS, 0, 1000, 1003);
		feed_rdt(21 * MS, 0, 2000, 1003);
		memwatch_slots_finish(slots);
		while (memwatch_slots_next(slots, &slot) == 1) {
			memwatch_value_merge(&residue[i],
					     &memwatch_slot_entry_at(slot, 0)->residue);
			if (!i && slot->begin_ns == 20 * MS)
				level = *memwatch_slot_rdt_at(memwatch_slot_entry_at(slot, 0),
							      MEMWATCH_RDT_OCCUPANCY);
		}
	}
	tap_eq(residue[0].value, 8192, "residual occupancy is the sum over the domains");
	tap_eq(residue[0].status, MEMWATCH_STATUS_OK, "residual occupancy of any age is exact");
	tap_eq(level.value, 1000, "residual occupancy is no part of the occupancy");
	tap_eq(residue[1].parts, 1, "residual occupancy is reported once for each allocation");
	tap_eq(residue[1].value, 0, "a clean RMID has a residual occupancy of 0");
	tap_eq(residue[2].parts, 0, "without a known allocation there is no residual occupancy");
}

/* A reading that did not fit into the budget of the tick is repeated with its age. */
static void test_stale(void)
{
	struct memwatch_record_rdt r = {
		.h = { .time_ns = 22 * MS, .type = MEMWATCH_RECORD_RDT, .size = sizeof(r) },
		.rmid = 1,
		.generation = 1,
		.age_ns = 2 * MS,
		.value = { 1000, 1003 },
		.status = { MEMWATCH_STATUS_STALE, MEMWATCH_STATUS_STALE },
	};
	struct memwatch_value total = { 0 }, level = { 0 };
	const struct memwatch_slot *slot;

	slots_restart(32, 0);
	feed_rmid(MEMWATCH_RECORD_RMID_ALLOC, 1, 10 * MS, "x");
	feed_rdt(20 * MS, 0, 1000, 1003);
	memwatch_slots_feed(slots, &r.h);
	feed_rdt(24 * MS, 0, 1000, 2003);
	memwatch_slots_finish(slots);
	while (memwatch_slots_next(slots, &slot) == 1) {
		const struct memwatch_slot_entry *entry = memwatch_slot_entry_at(slot, 0);

		memwatch_value_merge(&total, memwatch_slot_rdt_at(entry, MEMWATCH_RDT_MBM_TOTAL));
		if (slot->begin_ns == 20 * MS)
			level = *memwatch_slot_rdt_at(entry, MEMWATCH_RDT_OCCUPANCY);
	}
	tap_eq(total.value, 2003, "a repeated reading does not change the bandwidth");
	tap_eq(total.status, MEMWATCH_STATUS_OK, "bandwidth with a repeated reading is exact");
	tap_eq(level.value, 1000, "a repeated reading is the occupancy");
	tap_eq(level.status, MEMWATCH_STATUS_STALE, "a repeated occupancy is stale");
}

static void test_estimate(void)
{
	struct memwatch_record_sample s = {
		.h = { .time_ns = 21 * MS, .type = MEMWATCH_RECORD_SAMPLE, .size = sizeof(s) },
		.rmid = 1,
		.generation = 1,
		.begin_ns = 20 * MS,
		.run_ns = MS,
		.counter = { [MEMWATCH_COUNTER_LLC_MISSES] = 100 },
		.running_ppm = 1000000,
	};
	struct memwatch_value value[3];
	const struct memwatch_slot *slot;

	for (int i = 0; i < 3; i++) {
		s.status[MEMWATCH_COUNTER_LLC_MISSES] = i < 2 ? MEMWATCH_STATUS_OK
							      : MEMWATCH_STATUS_UNAVAILABLE;
		slots_restart(32, i ? MEMWATCH_SLOTS_ESTIMATE : 0);
		memwatch_slots_feed(slots, &s.h);
		memwatch_slots_finish(slots);
		memwatch_slots_next(slots, &slot);
		value[i] = *memwatch_slot_rdt_at(memwatch_slot_entry_at(slot, 0),
						 MEMWATCH_RDT_MBM_TOTAL);
	}
	tap_eq(value[0].parts, 0, "bandwidth is not estimated unless the caller asks for it");
	tap_eq(value[2].parts, 0, "bandwidth is not estimated without LLC misses");
	tap_eq(value[1].value, 6400, "bandwidth is estimated from LLC misses");
	tap_eq(value[1].status, MEMWATCH_STATUS_ESTIMATED,
	       "estimated bandwidth has the status ESTIMATED");
}

static void test_hostile(void)
{
	const struct memwatch_slot *slot;
	uint64_t run = 0;
	int more = 0;

	slots_restart(8, 0);
	tap_eq(feed_sample(20, 10, 1, 1, 1), -EINVAL,
	       "a sample that ends before it begins is refused");
	tap_eq(stats().invalid, 1, "an invalid sample is counted");
	feed_sample(0, ~0ULL - 1, 1, ~0ULL, ~0ULL);
	memwatch_slots_finish(slots);
	while (memwatch_slots_next(slots, &slot) == 1) {
		run += memwatch_slot_entry_at(slot, 0)->cpu_time_ns.value;
		more++;
	}
	tap_eq(run, ~0ULL, "the parts of a sample over all of time add up");
	tap_ok(more <= 10, "a sample over all of time has no more parts than open slots");
	slots_restart(1, 0);
	more = 0;
	for (uint64_t i = 0; i < 3000 && more >= 0; i++)
		more = feed_sample(i * MS, i * MS + 1, 1, 1, 1);
	tap_eq(more, -ENOBUFS, "the number of closed slots that wait is bounded");
}

/* The sums do not depend on the samples, their order, or the window. */
/* Adds the counters of all entries, and behind them the CPU time. */
static void add_slot(const struct memwatch_slot *slot, uint64_t got[5])
{
	for (uint32_t e = 0; e < slot->nr_entries; e++) {
		const struct memwatch_slot_entry *entry = memwatch_slot_entry_at(slot, e);

		got[4] += entry->cpu_time_ns.value;
		for (unsigned int c = 0; c < 4; c++)
			got[c] += memwatch_slot_counter_at(entry, c)->value;
	}
}

static void test_conservation(void)
{
	struct prng random = { 99 };
	bool same = true;

	for (int round = 0; round < 60; round++) {
		uint64_t fed[5] = { 0 }, got[5] = { 0 }, now = 1000 * MS;
		const struct memwatch_slot *slot;

		slots_restart(1 + (uint32_t)(prng_below(&random, 20)),
			      round % 2 ? MEMWATCH_SLOTS_PER_CPU : 0);
		for (int i = 0; i < 400; i++) {
			uint64_t begin = now - prng_below(&random, (30 * MS));
			uint64_t length = prng_below(&random, (7 * MS));
			struct memwatch_record_sample s = {
				.h = { .time_ns = begin + length,
				       .type = MEMWATCH_RECORD_SAMPLE,
				       .size = sizeof(s),
				       .cpu = (__u16)(i % 3) },
				.rmid = i % 4 ? 3 : 0,
				.begin_ns = begin,
				.run_ns = prng_below(&random, 1000000007),
				.status = { 1, 1, 1, 1 },
			};

			s.generation = s.rmid ? 1 : 0;
			fed[4] += s.run_ns;
			for (int c = 0; c < 4; c++) {
				s.counter[c] = prng_next(&random) >> 20;
				fed[c] += s.counter[c];
			}
			memwatch_slots_feed(slots, &s.h);
			now += prng_below(&random, (3 * MS));
			while (i % 7 == 0 && memwatch_slots_next(slots, &slot) == 1)
				add_slot(slot, got);
		}
		memwatch_slots_finish(slots);
		while (memwatch_slots_next(slots, &slot) == 1)
			add_slot(slot, got);
		same &= !memcmp(fed, got, sizeof(fed));
	}
	tap_ok(same, "24000 random samples in 60 windows add up to the last unit");
}

static void fill_summary(struct memwatch_summary *summary, uint32_t flags)
{
	MEMWATCH_OPTS(memwatch_null_opts, opts, .cpus = 4, .processes = 20, .pmu = 1, .rdt = 1,
		      .duration_ns = 500 * MS);
	const struct memwatch_record_header *record;
	const struct memwatch_slot *slot;
	struct memwatch_stream *stream;

	slots_restart(0, flags);
	memwatch_stream_open_null(ctx, &opts, &stream);
	while (memwatch_stream_next(stream, &record) == 1) {
		memwatch_slots_feed(slots, record);
		while (memwatch_slots_next(slots, &slot) == 1)
			memwatch_summary_feed(summary, slot);
	}
	memwatch_slots_finish(slots);
	while (memwatch_slots_next(slots, &slot) == 1)
		memwatch_summary_feed(summary, slot);
	memwatch_stream_unref(stream);
}

static void test_summary(uint32_t by, const char *name)
{
	MEMWATCH_OPTS(memwatch_summary_opts, opts, .by = by);
	uint64_t time = 0, cycles = 0, traffic = 0, last = ~0ULL;
	const struct memwatch_summary_row *row, *total;
	struct memwatch_summary *summary;
	size_t position = 0;
	bool sorted = true;

	memwatch_summary_new(ctx, &opts, &summary);
	fill_summary(summary, by == MEMWATCH_BY_CPU ? MEMWATCH_SLOTS_PER_CPU : 0);
	memwatch_summary_sort(summary, MEMWATCH_SORT_CPU_TIME, true);
	while (memwatch_summary_next(summary, &position, &row)) {
		time += row->cpu_time_ns.value;
		cycles += memwatch_summary_counter_at(row, 0)->value;
		traffic += row->mbm_total.value;
		sorted &= row->cpu_time_ns.value <= last || !row->cpu_time_ns.parts;
		last = row->cpu_time_ns.value;
	}
	memwatch_summary_get_total(summary, &total);
	tap_eq(time, 4 * 500 * MS, "summary by %s: CPU time is wall time times CPUs", name);
	tap_eq(time, total->cpu_time_ns.value, "summary by %s: CPU time adds up to the total",
	       name);
	tap_eq(cycles, memwatch_summary_counter_at(total, 0)->value,
	       "summary by %s: cycles add up to the total", name);
	tap_ok(cycles > 0, "summary by %s: there are cycles", name);
	if (by != MEMWATCH_BY_CPU)
		tap_eq(traffic, total->mbm_total.value,
		       "summary by %s: bandwidth adds up to the total", name);
	tap_eq(total->slots, 500, "summary by %s: the total counts every slot once", name);
	tap_ok(sorted, "summary by %s: rows are sorted by CPU time", name);
	memwatch_summary_unref(summary);
}

static void test_summary_rows(void)
{
	MEMWATCH_OPTS(memwatch_summary_opts, opts, .from_ns = 1000000 * MS + 100 * MS,
		      .to_ns = 1000000 * MS + 200 * MS, .rows_max = 5);
	const struct memwatch_summary_row *row;
	struct memwatch_summary *summary;
	uint64_t time = 0, unassigned = 0, other = 0, rmids = 0;
	size_t position = 0;

	memwatch_summary_new(ctx, &opts, &summary);
	fill_summary(summary, 0);
	while (memwatch_summary_next(summary, &position, &row)) {
		time += row->cpu_time_ns.value;
		unassigned += !!(row->flags & MEMWATCH_ROW_UNASSIGNED);
		other += !!(row->flags & MEMWATCH_ROW_OTHER);
		rmids += row->nr_rmids;
	}
	tap_eq(time, 4 * 100 * MS, "a summary of a range has the slots of this range");
	tap_eq(position, 6, "beyond rows_max there is one row more");
	tap_eq(unassigned, 1, "RMID 0 has a row of its own");
	tap_eq(other, 1, "all rows beyond rows_max are in one row");
	tap_ok(rmids >= 5, "rows list their RMIDs");
	memwatch_summary_unref(summary);
}

/* By slot, every row has the time of its slot, even if there are only RDT readings in it. */
static void test_summary_rdt_only(void)
{
	MEMWATCH_OPTS(memwatch_summary_opts, opts, .by = MEMWATCH_BY_SLOT);
	const struct memwatch_summary_row *row;
	struct memwatch_summary *summary;
	const struct memwatch_slot *slot;
	uint64_t ran = 0, read = 0;
	size_t position = 0;
	bool same = true;

	memwatch_summary_new(ctx, &opts, &summary);
	slots_restart(4, 0);
	feed_rmid(MEMWATCH_RECORD_RMID_ALLOC, 1, 10 * MS, "one");
	feed_sample(10 * MS, 11 * MS, 1, MS, 5);
	feed_rdt(20 * MS, 0, 1000, 1000);
	feed_rdt(30 * MS, 0, 500, 3000);
	memwatch_slots_finish(slots);
	while (memwatch_slots_next(slots, &slot) == 1)
		memwatch_summary_feed(summary, slot);
	while (memwatch_summary_next(summary, &position, &row)) {
		ran += row->samples > 0;
		read += !row->samples && !row->slots;
		/* Late parts are in one row that spans their slots. */
		same &= row->first_ns >= 10 * MS &&
			(row->flags & MEMWATCH_ROW_LATE ? row->last_ns > row->first_ns
							: row->last_ns == row->first_ns + MS);
	}
	tap_eq(ran, 1, "summary by slot: one row has samples");
	tap_ok(read >= 2, "summary by slot: %llu rows have only RDT readings",
	       (unsigned long long)read);
	tap_ok(same, "summary by slot: every row has the time of its slot");
	memwatch_summary_unref(summary);
}

/* RMID 1 is given to a process that had waited for one, RMID 2 to a new one. */
static void test_summary_partial(void)
{
	MEMWATCH_OPTS(memwatch_summary_opts, opts, .by = MEMWATCH_BY_PROCESS);
	const struct memwatch_summary_row *row;
	struct memwatch_summary *summary;
	const struct memwatch_slot *slot;
	size_t position = 0;

	memwatch_summary_new(ctx, &opts, &summary);
	slots_restart(4, 0);
	feed_rmid_for(MEMWATCH_RECORD_RMID_ALLOC, 1, 10 * MS, "late", MEMWATCH_REASON_PROMOTED);
	feed_rmid(MEMWATCH_RECORD_RMID_ALLOC, 2, 10 * MS, "new");
	feed_sample(10 * MS, 11 * MS, 1, MS / 2, 5);
	feed_sample(10 * MS, 11 * MS, 2, MS / 2, 5);
	memwatch_slots_finish(slots);
	while (memwatch_slots_next(slots, &slot) == 1)
		memwatch_summary_feed(summary, slot);
	while (memwatch_summary_next(summary, &position, &row)) {
		bool late = !strcmp(row->comm, "late");

		tap_eq(memwatch_summary_counter_at(row, 0)->status,
		       late ? MEMWATCH_STATUS_ESTIMATED : MEMWATCH_STATUS_OK,
		       "the cycles of a process %s",
		       late ? "that had to wait are a lower bound"
			    : "with an RMID from its start are ok");
	}
	tap_eq(position, 2, "a process that had to wait and a new one are two rows");
	memwatch_summary_unref(summary);
}

int main(void)
{
	tap_start();
	memwatch_ctx_new(NULL, &ctx);
	test_split();
	test_names();
	test_late();
	test_rdt();
	test_residue();
	test_stale();
	test_estimate();
	test_hostile();
	test_conservation();
	test_summary(MEMWATCH_BY_PROCESS, "process");
	test_summary(MEMWATCH_BY_CGROUP, "cgroup");
	test_summary(MEMWATCH_BY_RMID, "rmid");
	test_summary(MEMWATCH_BY_CPU, "cpu");
	test_summary(MEMWATCH_BY_SLOT, "slot");
	test_summary_rows();
	test_summary_rdt_only();
	test_summary_partial();
	memwatch_slots_unref(slots);
	memwatch_ctx_unref(ctx);
	return tap_done();
}
