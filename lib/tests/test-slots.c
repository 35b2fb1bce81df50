// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Slots and summaries. The property behind all of it is conservation: whatever
 * goes in comes out, in parts, but to the last unit.
 */
#include <errno.h>
#include <string.h>

#include <memwatch/slots.h>
#include <memwatch/stream.h>
#include <memwatch/summary.h>

#include "../../selftests/tap.h"
#include "../../selftests/prng.h"

#define MS 1000000ULL

static struct memwatch_ctx *ctx;
static struct memwatch_slots *slots;

static void start(uint32_t window, uint32_t flags)
{
	MEMWATCH_OPTS(memwatch_slots_opts, opts, .window = window, .flags = flags);

	memwatch_slots_unref(slots);
	memwatch_slots_new(ctx, NULL, &opts, &slots);
}

static int sample(uint64_t begin, uint64_t end, uint32_t rmid, uint64_t run, uint64_t cycles)
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

static int assign(uint16_t type, uint32_t rmid, uint64_t time_ns, const char *comm)
{
	struct memwatch_record_rmid r = {
		.h = { .time_ns = time_ns, .type = type, .size = sizeof(r) },
		.rmid = rmid,
		.generation = 1,
		.tgid = 500 + rmid,
		.alloc_time_ns = time_ns,
		.cgroup_id = 9,
	};

	strncpy(r.comm, comm, sizeof(r.comm) - 1);
	return memwatch_slots_feed(slots, &r.h);
}

static int rdt(uint64_t time_ns, uint32_t domain, uint64_t occupancy, uint64_t total)
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

	memwatch_slots_stats(slots, &now);
	return now;
}

static void test_split(void)
{
	static const uint64_t cycles[] = { 3, 10, 1 }; /* 0.7..1 | 1..2 | 2..2.1 of 14 */
	const struct memwatch_slot *slot;
	bool same = true;

	start(4, 0);
	sample(100 * MS + 700000, 102 * MS + 100000, 5, 1400, 14);
	memwatch_slots_finish(slots);
	for (uint64_t i = 0; i < 3; i++) {
		same &= memwatch_slots_next(slots, &slot) == 1 &&
			slot->begin_ns == (100 + i) * MS && slot->end_ns == (101 + i) * MS &&
			slot->nr_entries == 1 && slot->entries[0].rmid == 5 &&
			slot->entries[0].counter[0].value == cycles[i] &&
			slot->entries[0].run_ns == cycles[i] * 100;
	}
	tap_ok(same && memwatch_slots_next(slots, &slot) == 0, "a sample is split by time");
	tap_ok(stats().split == 1 && stats().late == 0 && stats().unknown == 3, "and counted");
	start(4, 0);
	sample(5 * MS, 6 * MS, 1, 10, 1);
	sample(6 * MS, 6 * MS, 1, 7, 1);
	memwatch_slots_finish(slots);
	tap_ok(memwatch_slots_next(slots, &slot) == 1 && slot->begin_ns == 5 * MS &&
		       slot->entries[0].run_ns == 10 && memwatch_slots_next(slots, &slot) == 1 &&
		       slot->begin_ns == 6 * MS && slot->entries[0].run_ns == 7,
	       "an interval ends before its end");
}

static void test_names(void)
{
	const struct memwatch_slot *slot;
	bool same = true;

	start(2, 0);
	assign(MEMWATCH_RECORD_RMID_ALLOC, 1, 10 * MS, "first");
	sample(10 * MS, 10 * MS + 400000, 1, 5, 5);
	assign(MEMWATCH_RECORD_RMID_FREE, 1, 10 * MS + 500000, "first");
	/* the measurement comes after the free, in the same slot and in the next */
	sample(10 * MS + 400000, 11 * MS + 200000, 1, 8, 8);
	/* a late tick: the sample is split over slots before the alloc in it */
	assign(MEMWATCH_RECORD_RMID_ALLOC, 2, 13 * MS + 900000, "second");
	sample(12 * MS, 14 * MS, 2, 10, 1);
	memwatch_slots_finish(slots);
	for (int i = 0; i < 2; i++)
		same &= memwatch_slots_next(slots, &slot) == 1 && slot->entries[0].process &&
			!strcmp(slot->entries[0].process->comm, "first");
	tap_ok(same, "a name outlives its RMID until the slots are closed");
	tap_ok(memwatch_slots_next(slots, &slot) == 1 && slot->begin_ns == 12 * MS &&
		       slot->entries[0].process &&
		       !strcmp(slot->entries[0].process->comm, "second"),
	       "and is known in all slots of the sample that its RMID was given in");
}

static void test_late(void)
{
	const struct memwatch_slot *slot;
	uint64_t run = 0;
	bool late = false;

	start(2, 0);
	sample(10 * MS, 11 * MS, 1, 100, 0);
	sample(19 * MS, 20 * MS, 1, 100, 0);
	sample(10 * MS, 11 * MS, 3, 50, 0);
	/* half of it is for slots that are still open */
	sample(17 * MS, 19 * MS, 3, 60, 0);
	memwatch_slots_finish(slots);
	while (memwatch_slots_next(slots, &slot) == 1) {
		for (uint32_t i = 0; i < slot->nr_entries; i++) {
			run += slot->entries[i].run_ns;
			if (slot->flags & MEMWATCH_SLOT_LATE)
				late |= slot->entries[i].rmid == 3 &&
					slot->entries[i].run_ns == 80 &&
					slot->begin_ns == 10 * MS && slot->end_ns == 18 * MS;
		}
	}
	tap_ok(late, "what comes for closed slots is in a late one");
	tap_ok(run == 310, "and nothing is dropped");
	tap_ok(stats().late == 2 && stats().late_run_ns == 80, "late ones are counted");
}

static void test_rdt(void)
{
	uint64_t total = 0, parts = 0, level = 0, later = 0;
	const struct memwatch_slot *slot;
	uint8_t status = MEMWATCH_STATUS_OK;

	start(32, 0);
	assign(MEMWATCH_RECORD_RMID_ALLOC, 1, 10 * MS, "x");
	rdt(20 * MS, 0, 1000, 1003);
	rdt(20 * MS + 1, 1, 500, 0);
	rdt(20 * MS + 2, 0, 800, 1003);
	rdt(30 * MS, 0, 700, 2003);
	memwatch_slots_finish(slots);
	while (memwatch_slots_next(slots, &slot) == 1) {
		const struct memwatch_value *value = slot->entries[0].rdt;

		total += value[MEMWATCH_RDT_MBM_TOTAL].value;
		parts += value[MEMWATCH_RDT_MBM_TOTAL].parts > 0;
		if (slot->begin_ns == 20 * MS)
			level = value[MEMWATCH_RDT_OCCUPANCY].value;
		if (slot->begin_ns == 30 * MS)
			later = value[MEMWATCH_RDT_OCCUPANCY].value;
		if (value[MEMWATCH_RDT_MBM_LOCAL].parts)
			status = value[MEMWATCH_RDT_MBM_LOCAL].status;
	}
	tap_ok(total == 2003 && parts == 20, "traffic since the alloc is split over its slots");
	tap_ok(level == 1300, "occupancy is the last reading of each domain");
	tap_ok(later == 1200, "also of one that was not read in that slot");
	tap_ok(status == MEMWATCH_STATUS_UNAVAILABLE, "what is not measured is not 0");
}

/* What the RMID's earlier owners have left in the cache is told once, and is not its own. */
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
		start(32, 0);
		if (i < 2)
			assign(MEMWATCH_RECORD_RMID_ALLOC, 1, 10 * MS, "x");
		if (!i) {
			memwatch_slots_feed(slots, &r.h);
			r.domain = 1;
			memwatch_slots_feed(slots, &r.h);
		}
		rdt(20 * MS, 0, 1000, 1003);
		rdt(21 * MS, 0, 2000, 1003);
		memwatch_slots_finish(slots);
		while (memwatch_slots_next(slots, &slot) == 1) {
			memwatch_value_merge(&residue[i], &slot->entries[0].residue);
			if (!i && slot->begin_ns == 20 * MS)
				level = slot->entries[0].rdt[MEMWATCH_RDT_OCCUPANCY];
		}
	}
	tap_ok(residue[0].value == 8192 && residue[0].status == MEMWATCH_STATUS_OK,
	       "residue of each domain, whatever its age");
	tap_ok(level.value == 1000, "is no part of the occupancy");
	tap_ok(residue[1].parts == 1 && !residue[1].value, "a clean RMID has 0, once");
	tap_ok(!residue[2].parts, "one whose beginning was not seen has none");
}

/* What could not be read in time is repeated with its age. */
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

	start(32, 0);
	assign(MEMWATCH_RECORD_RMID_ALLOC, 1, 10 * MS, "x");
	rdt(20 * MS, 0, 1000, 1003);
	memwatch_slots_feed(slots, &r.h);
	rdt(24 * MS, 0, 1000, 2003);
	memwatch_slots_finish(slots);
	while (memwatch_slots_next(slots, &slot) == 1) {
		const struct memwatch_value *value = slot->entries[0].rdt;

		memwatch_value_merge(&total, &value[MEMWATCH_RDT_MBM_TOTAL]);
		if (slot->begin_ns == 20 * MS)
			level = value[MEMWATCH_RDT_OCCUPANCY];
	}
	tap_ok(total.value == 2003 && total.status == MEMWATCH_STATUS_OK,
	       "an old reading, repeated, takes nothing from the traffic");
	tap_ok(level.value == 1000 && level.status == MEMWATCH_STATUS_STALE,
	       "and is told of the occupancy");
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
		start(32, i ? MEMWATCH_SLOTS_ESTIMATE : 0);
		memwatch_slots_feed(slots, &s.h);
		memwatch_slots_finish(slots);
		memwatch_slots_next(slots, &slot);
		value[i] = slot->entries[0].rdt[MEMWATCH_RDT_MBM_TOTAL];
	}
	tap_ok(!value[0].parts && !value[2].parts,
	       "bandwidth is not estimated unasked or from nothing");
	tap_ok(value[1].value == 6400 && value[1].status == MEMWATCH_STATUS_ESTIMATED,
	       "from LLC misses it is, and says so");
}

static void test_hostile(void)
{
	const struct memwatch_slot *slot;
	uint64_t run = 0;
	int more = 0;

	start(8, 0);
	tap_ok(sample(20, 10, 1, 1, 1) == -EINVAL && stats().invalid == 1,
	       "a sample that ends before it begins");
	sample(0, ~0ULL - 1, 1, ~0ULL, ~0ULL);
	memwatch_slots_finish(slots);
	while (memwatch_slots_next(slots, &slot) == 1) {
		run += slot->entries[0].run_ns;
		more++;
	}
	tap_ok(run == ~0ULL && more <= 10, "a sample over all of time is split, and adds up");
	start(1, 0);
	more = 0;
	for (uint64_t i = 0; i < 3000 && more >= 0; i++)
		more = sample(i * MS, i * MS + 1, 1, 1, 1);
	tap_ok(more == -ENOBUFS, "closed slots that nobody takes are bounded");
}

/* Any samples, in any order, whatever the window: the sums are the same. */
static void test_conservation(void)
{
	struct prng random = { 99 };
	bool same = true;

	for (int round = 0; round < 60; round++) {
		uint64_t fed[5] = { 0 }, got[5] = { 0 }, now = 1000 * MS;
		const struct memwatch_slot *slot;

		start(1 + (uint32_t)(prng_next(&random) % 20),
		      round % 2 ? MEMWATCH_SLOTS_PER_CPU : 0);
		for (int i = 0; i < 400; i++) {
			uint64_t begin = now - prng_next(&random) % (30 * MS);
			uint64_t length = prng_next(&random) % (7 * MS);
			struct memwatch_record_sample s = {
				.h = { .time_ns = begin + length,
				       .type = MEMWATCH_RECORD_SAMPLE,
				       .size = sizeof(s),
				       .cpu = (__u16)(i % 3) },
				.rmid = i % 4 ? 3 : 0,
				.begin_ns = begin,
				.run_ns = prng_next(&random) % 1000000007,
				.status = { 1, 1, 1, 1 },
			};

			s.generation = s.rmid ? 1 : 0;
			fed[4] += s.run_ns;
			for (int c = 0; c < 4; c++) {
				s.counter[c] = prng_next(&random) >> 20;
				fed[c] += s.counter[c];
			}
			memwatch_slots_feed(slots, &s.h);
			now += prng_next(&random) % (3 * MS);
			while (i % 7 == 0 && memwatch_slots_next(slots, &slot) == 1) {
				for (uint32_t e = 0; e < slot->nr_entries; e++) {
					got[4] += slot->entries[e].run_ns;
					for (int c = 0; c < 4; c++)
						got[c] += slot->entries[e].counter[c].value;
				}
			}
		}
		memwatch_slots_finish(slots);
		while (memwatch_slots_next(slots, &slot) == 1) {
			for (uint32_t e = 0; e < slot->nr_entries; e++) {
				got[4] += slot->entries[e].run_ns;
				for (int c = 0; c < 4; c++)
					got[c] += slot->entries[e].counter[c].value;
			}
		}
		same &= !memcmp(fed, got, sizeof(fed));
	}
	tap_ok(same, "conservation: 24000 random samples, 60 windows, to the last unit");
}

static void fill_summary(struct memwatch_summary *summary, uint32_t flags)
{
	MEMWATCH_OPTS(memwatch_null_opts, opts, .cpus = 4, .processes = 20, .pmu = 1, .rdt = 1,
		      .duration_ns = 500 * MS);
	const struct memwatch_record_header *record;
	const struct memwatch_slot *slot;
	struct memwatch_stream *stream;

	start(0, flags);
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
		cycles += row->counter[0].value;
		traffic += row->mbm_total.value;
		sorted &= row->cpu_time_ns.value <= last || !row->cpu_time_ns.parts;
		last = row->cpu_time_ns.value;
	}
	memwatch_summary_total(summary, &total);
	tap_ok(time == 4 * 500 * MS && time == total->cpu_time_ns.value,
	       "summary by %s: CPU time is wall time times CPUs", name);
	tap_ok(cycles == total->counter[0].value && cycles > 0 &&
		       (by == MEMWATCH_BY_CPU || traffic == total->mbm_total.value) &&
		       total->slots == 500,
	       "summary by %s: rows add up to the total", name);
	tap_ok(sorted, "summary by %s: sorted", name);
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
	tap_ok(time == 4 * 100 * MS, "a range is cut at slots, exactly");
	tap_ok(position == 6 && unassigned == 1 && other == 1,
	       "beyond rows_max there is one row more");
	tap_ok(rmids >= 5, "rows list their RMIDs");
	memwatch_summary_unref(summary);
}

/* By slot, the time is what the row is about, whether anything ran in it or was only read. */
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
	start(4, 0);
	assign(MEMWATCH_RECORD_RMID_ALLOC, 1, 10 * MS, "one");
	sample(10 * MS, 11 * MS, 1, MS, 5);
	rdt(20 * MS, 0, 1000, 1000);
	rdt(30 * MS, 0, 500, 3000);
	memwatch_slots_finish(slots);
	while (memwatch_slots_next(slots, &slot) == 1)
		memwatch_summary_feed(summary, slot);
	while (memwatch_summary_next(summary, &position, &row)) {
		ran += row->samples > 0;
		read += !row->samples && !row->slots;
		/* what came too late for its slots is one row for all of them */
		same &= row->first_ns >= 10 * MS &&
			(row->flags & MEMWATCH_ROW_LATE ? row->last_ns > row->first_ns
							: row->last_ns == row->first_ns + MS);
	}
	tap_ok(ran == 1 && read >= 2 && same,
	       "summary by slot: every row has its time (%llu only read)",
	       (unsigned long long)read);
	memwatch_summary_unref(summary);
}

static void test_status(void)
{
	struct memwatch_value sum = { 0 };
	bool same = true;

	for (__u8 a = 0; a < 8; a++) {
		for (__u8 b = 0; b < 8; b++) {
			same &= memwatch_status_worst(a, b) == memwatch_status_worst(b, a);
			for (__u8 c = 0; c < 7 && a < 7 && b < 7; c++)
				same &= memwatch_status_worst(memwatch_status_worst(a, b), c) ==
					memwatch_status_worst(a, memwatch_status_worst(b, c));
		}
	}
	tap_ok(same, "the worst status does not depend on order");
	memwatch_value_add(&sum, 5, MEMWATCH_STATUS_UNAVAILABLE);
	tap_ok(sum.value == 0 && sum.status == MEMWATCH_STATUS_UNAVAILABLE,
	       "unavailable has no number");
	memwatch_value_add(&sum, 5, MEMWATCH_STATUS_OK);
	tap_ok(sum.value == 5 && sum.status == MEMWATCH_STATUS_ESTIMATED && sum.parts == 2,
	       "with a part missing it is an estimate");
	memwatch_value_add(&sum, ~0ULL, MEMWATCH_STATUS_OK);
	tap_ok(sum.value == ~0ULL, "a sum does not wrap");
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
	test_status();
	memwatch_slots_unref(slots);
	memwatch_ctx_unref(ctx);
	return tap_done();
}
