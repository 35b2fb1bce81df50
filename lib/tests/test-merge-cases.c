// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The merge in particular situations: silent and idle CPUs, detached rings, a reader that is
 * always behind, limited memory, and frames that differ from those before them.
 */
#include <stdio.h>

#include "../../selftests/tap.h"
#include "merge/merge.h"
#include "rings.h"
#include "base/timemath.h"

#define GRACE_NS  2000
#define SILENT_NS 50000

struct record {
	struct memwatch_record_header h;
	uint64_t more[5];
};

static struct mw_merge *merge;
static struct writer writers[2];

static void open_rings(const struct mw_merge_opts *opts, unsigned int count, size_t size)
{
	mw_merge_new(opts, &merge);
	for (unsigned int i = 0; i < count; i++) {
		writer_init(&writers[i], size);
		mw_merge_ring_add(merge, i, &writers[i].ring);
	}
}

static void close_rings(unsigned int count)
{
	mw_merge_free(merge);
	for (unsigned int i = 0; i < count; i++)
		writer_free(&writers[i]);
}

static bool put_record(struct writer *writer, uint64_t time_ns)
{
	struct record record = { .h = { .time_ns = time_ns, .type = 1000, .size = 24 } };

	return writer_output(writer, &record, record.h.size);
}

static void put_idle(struct writer *writer, uint64_t time_ns)
{
	struct memwatch_record_cpu idle = {
		.h = { .time_ns = time_ns,
		       .type = MEMWATCH_RECORD_CPU_STATE,
		       .size = sizeof(idle) },
		.state = MEMWATCH_CPU_IDLE,
	};

	writer_output(writer, &idle, sizeof(idle));
}

static void test_waiting(void)
{
	struct mw_merge_opts opts = { .grace_ns = GRACE_NS, .silent_ns = SILENT_NS };
	const struct memwatch_record_header *header;
	uint64_t time_ns = 1000000;

	open_rings(&opts, 2, 4096);
	put_record(&writers[0], time_ns);
	tap_eq(mw_merge_round(merge, time_ns + SILENT_NS), 0,
	       "a silent CPU delays the stream up to the time-out");
	tap_eq(mw_merge_deadline(merge), time_ns + SILENT_NS + 1,
	       "the deadline of a silent CPU is the time-out");
	tap_eq(mw_merge_round(merge, time_ns + SILENT_NS + 1), 1,
	       "a silent CPU does not delay the stream after the time-out");
	tap_ok(mw_merge_next(merge, &header) && header->flags == MEMWATCH_RECORD_F_FORCED,
	       "a record that is delivered without a silent CPU is forced");

	time_ns = 1100000;
	put_record(&writers[0], time_ns);
	put_idle(&writers[1], time_ns + 1);
	put_idle(&writers[0], time_ns + 1);
	tap_eq(mw_merge_round(merge, time_ns + GRACE_NS), 0,
	       "an idle CPU delays the stream for the grace");
	tap_eq(mw_merge_round(merge, time_ns + GRACE_NS + 1), 1,
	       "an idle CPU does not delay the stream after the grace");
	tap_ok(mw_merge_next(merge, &header) && !header->flags,
	       "a record that is delivered without an idle CPU is not forced");
	close_rings(2);
}

/* As when the period becomes longer. */
static void test_longer_waiting(void)
{
	struct mw_merge_opts opts = { .grace_ns = GRACE_NS, .silent_ns = SILENT_NS };
	uint64_t time_ns = 1000000;

	open_rings(&opts, 2, 4096);
	put_record(&writers[0], time_ns);
	mw_merge_set_silent(merge, 3 * SILENT_NS);
	tap_eq(mw_merge_round(merge, time_ns + 3 * SILENT_NS), 0,
	       "with a longer time-out, a silent CPU delays the stream for longer");
	tap_eq(mw_merge_deadline(merge), time_ns + 3 * SILENT_NS + 1,
	       "the deadline follows the time-out");
	tap_eq(mw_merge_round(merge, time_ns + 3 * SILENT_NS + 1), 1,
	       "the longer time-out ends, too");
	close_rings(2);
}

/* With a grace of minutes, everything would have to wait. */
static void test_memory(void)
{
	struct mw_merge_opts opts = { .grace_ns = 1ULL << 40, .silent_ns = 1ULL << 41 };
	struct memwatch_stream_stats stats = { .sz = sizeof(stats) };
	const struct memwatch_record_header *header;
	struct record record = { .h = { .type = 1000, .size = 16 } };
	uint64_t written = 0, last = 0;
	bool sorted = true;

	open_rings(&opts, 1, 1U << 20);
	for (uint64_t i = 0; i < 500000; i++) {
		record.h.time_ns = i;
		written += writer_output(&writers[0], &record, 16);
		if (i % 1000)
			continue;
		while (mw_merge_round(merge, i) > 0) {
			while (mw_merge_next(merge, &header)) {
				sorted &= header->time_ns >= last;
				last = header->time_ns;
			}
		}
	}
	mw_merge_stats(merge, &stats);
	tap_eq(written, 500000, "no record is lost under overload");
	tap_ok(sorted, "records are in order under overload");
	tap_ok(stats.delivered > 400000, "records are delivered under overload (%llu)",
	       (unsigned long long)stats.delivered);
	tap_ok(stats.memory_bytes < (1U << 20) + 3 * 2 * MW_MERGE_PENDING_MAX * 16 + 100000,
	       "memory is bounded under overload (%llu bytes)",
	       (unsigned long long)stats.memory_bytes);
	close_rings(1);
}

static void test_reader_behind(void)
{
	struct mw_merge_opts opts = { .silent_ns = SILENT_NS, .quantum = 40 };
	const struct memwatch_record_header *header;
	bool ok = true;

	open_rings(&opts, 1, 4096);
	for (uint64_t i = 1; i <= 1000; i++) {
		ok &= put_record(&writers[0], i);
		/* from then on, one record is read for each that is written */
		if (i > 20)
			ok &= mw_merge_round(merge, i) == 1 && mw_merge_next(merge, &header) &&
			      !mw_merge_next(merge, &header);
	}
	tap_ok(ok, "a reader that never reaches the end of a ring gives space back");
	close_rings(1);
}

/* An idle CPU becomes active while the reader still reads its older records. */
static void test_idle_cpu_wakes_up(void)
{
	struct mw_merge_opts opts = { .silent_ns = SILENT_NS, .quantum = 1 << 10 };
	struct memwatch_stream_stats stats = { .sz = sizeof(stats) };
	const struct memwatch_record_header *header;

	open_rings(&opts, 2, 1 << 15);
	for (uint64_t time_ns = 100; time_ns < 150; time_ns++) {
		put_record(&writers[0], time_ns);
		if (time_ns < 110)
			put_record(&writers[1], time_ns);
	}
	put_idle(&writers[0], 150);
	for (uint64_t now = 1000; mw_merge_round(merge, now) > 0; now++) {
		while (mw_merge_next(merge, &header))
			;
		if (now > 1000)
			continue;
		put_record(&writers[0], 200);
		for (uint64_t time_ns = 300; time_ns < 320; time_ns++)
			put_record(&writers[1], time_ns);
	}
	mw_merge_finish(merge, 2000);
	while (mw_merge_round(merge, 2000) > 0)
		while (mw_merge_next(merge, &header))
			;
	mw_merge_stats(merge, &stats);
	tap_eq(stats.late, 0, "records of a CPU that wakes up meanwhile are not late");
	tap_eq(stats.delivered, 82, "records of a CPU that wakes up meanwhile are delivered");
	close_rings(2);
}

static void test_detached_ring(void)
{
	struct mw_merge_opts opts = { .grace_ns = GRACE_NS, .silent_ns = SILENT_NS };
	const struct memwatch_record_header *header = NULL;

	open_rings(&opts, 2, 4096);
	put_record(&writers[1], 1000);
	put_record(&writers[0], 9000);
	mw_merge_ring_detach(merge, 1);
	tap_ok(!mw_merge_ring_drained(merge, 1), "a detached ring with records is not drained");
	tap_eq(mw_merge_round(merge, 9000), 1, "the records of a detached ring are delivered");
	tap_ok(mw_merge_next(merge, &header) && header->time_ns == 1000,
	       "the record of a detached ring is the expected one");
	tap_ok(!mw_merge_next(merge, &header) && !mw_merge_round(merge, 9000),
	       "a detached ring does not affect the other rings");
	tap_ok(mw_merge_ring_drained(merge, 1), "a detached ring without records is drained");
	close_rings(2);
}

/*
 * One frame in eight differs from the others, which have three records of 40 bytes and one of
 * 48 bytes. @valid of its @records records are delivered, the others are malformed. @single: a
 * record of this type and size is written before the frame as well, where it is valid.
 */
static const struct frame_case {
	const char *what;
	uint32_t records;
	uint32_t at; /* index of the record that differs */
	uint16_t type, size, flags;
	uint64_t later_ns;
	uint32_t valid;
	bool single;
} frame_cases[] = {
	{ "no difference", 4, 1, 1000, 40, 0, 0, 4, false },
	{ "a longer record", 4, 1, 1000, 48, 0, 0, 2, false },
	{ "a record of size 0", 4, 1, 1000, 0, 0, 0, 1, false },
	{ "a record beyond the end", 4, 3, 1000, 56, 0, 0, 3, false },
	{ "a last record of another type", 4, 3, 1001, 48, 0, 0, 4, false },
	{ "a record of another type", 4, 1, 1001, 40, 0, 0, 4, false },
	{ "a record that must be single", 4, 2, MEMWATCH_RECORD_LOST, 40, 0, 0, 2, false },
	{ "a last record that must be single", 4, 3, MEMWATCH_RECORD_NOTICE, 48, 0, 0, 3, true },
	{ "a flag", 4, 2, 1000, 40, MEMWATCH_RECORD_F_LATE, 0, 2, false },
	{ "a flag in the last record", 4, 3, 1000, 48, MEMWATCH_RECORD_F_LATE, 0, 3, false },
	{ "another time", 4, 2, 1000, 40, 0, 1, 2, false },
	{ "another time in the last record", 4, 3, 1000, 48, 0, 1, 3, false },
	{ "a number of records that is too large", 5, 1, 1000, 40, 0, 0, 4, false },
	{ "a number of records that is too small", 3, 1, 1000, 40, 0, 0, 3, false },
};

/* Writes a frame that differs as @differs says, or one of the others if that is NULL. */
static bool put_frame(uint64_t time_ns, const struct frame_case *differs)
{
	uint8_t bytes[3 * 40 + 48] = { 0 };

	for (uint32_t i = 0; i < 4; i++) {
		struct memwatch_record_header h = { .time_ns = time_ns,
						    .type = 1000,
						    .size = i < 3 ? 40 : 48 };

		if (differs && i == differs->at) {
			h.time_ns += differs->later_ns;
			h.type = differs->type;
			h.size = differs->size;
			h.flags = differs->flags;
		}
		memcpy(bytes + (size_t)i * 40, &h, sizeof(h));
	}
	return writer_batch(&writers[0], differs ? differs->records : 4, bytes, sizeof(bytes));
}

static bool put_single(uint64_t time_ns, const struct frame_case *test)
{
	struct record record = {
		.h = { .time_ns = time_ns, .type = test->type, .size = test->size }
	};

	return writer_output(&writers[0], &record, record.h.size);
}

static void test_frame(const struct frame_case *test)
{
	struct mw_merge_opts opts = { .silent_ns = SILENT_NS };
	struct memwatch_stream_stats stats = { .sz = sizeof(stats) };
	const struct memwatch_record_header *header;
	uint64_t now = 1000, last = 0;
	bool ok = true;

	open_rings(&opts, 1, 1 << 15);
	for (int i = 0; i < 40; i++, now += 10) {
		if (i % 8 == 7 && test->single)
			ok &= put_single(now, test);
		ok &= put_frame(now, i % 8 == 7 ? test : NULL);
	}
	mw_merge_finish(merge, now);
	while (mw_merge_round(merge, now) > 0)
		while (mw_merge_next(merge, &header)) {
			ok &= header->time_ns >= last && header->size >= sizeof(*header);
			last = header->time_ns;
		}
	mw_merge_stats(merge, &stats);
	tap_ok(ok, "among equal frames, %s: records are valid and in order", test->what);
	tap_eq(stats.delivered, 35 * 4 + 5 * (test->valid + test->single),
	       "among equal frames, %s: number of records", test->what);
	tap_eq(stats.malformed, 5 * (test->records - test->valid),
	       "among equal frames, %s: number of malformed records", test->what);
	tap_eq(stats.late, 0, "among equal frames, %s: no record is late", test->what);
	close_rings(1);
}

/* Writes a frame of samples and a tick, with an RDT record between them if @rdt is its size. */
static bool put_slot(uint64_t time_ns, uint32_t samples, uint16_t rdt, uint64_t produced)
{
	struct memwatch_record_tick tick = {
		.h = { .time_ns = time_ns, .type = MEMWATCH_RECORD_TICK, .size = sizeof(tick) },
		.produced = produced,
	};
	struct memwatch_record_sample sample = {
		.h = { .time_ns = time_ns, .type = MEMWATCH_RECORD_SAMPLE, .size = sizeof(sample) },
	};
	struct memwatch_record_rdt reading = {
		.h = { .time_ns = time_ns, .type = MEMWATCH_RECORD_RDT, .size = rdt },
	};
	uint8_t bytes[3 * sizeof(sample) + sizeof(reading) + sizeof(tick)], *to = bytes;

	for (uint32_t i = 0; i < samples; i++)
		to = mempcpy(to, &sample, sizeof(sample));
	if (rdt)
		to = mempcpy(to, &reading, sizeof(reading));
	to = mempcpy(to, &tick, sizeof(tick));
	return writer_batch(&writers[0], samples + !!rdt + 1, bytes, (size_t)(to - bytes));
}

/* Frames with an RDT record of @size bytes, and without one, in turns. */
static void test_rdt_in_frames(const char *what, uint16_t size, bool valid)
{
	struct mw_merge_opts opts = { .silent_ns = SILENT_NS };
	struct memwatch_stream_stats stats = { .sz = sizeof(stats) };
	const struct memwatch_record_header *header;
	uint64_t now = 1000, produced = 0, last = 0, ticks = 0, readings = 0;
	bool ok = true;

	open_rings(&opts, 1, 1 << 15);
	for (uint32_t i = 0; i < 60; i++, now += 10) {
		uint32_t samples = 1 + i / 3 % 3;
		uint16_t rdt = i % 5 < 3 ? size : 0;

		produced += samples + !!rdt + 1;
		ok &= put_slot(now, samples, rdt, produced);
	}
	mw_merge_finish(merge, now);
	while (mw_merge_round(merge, now) > 0)
		while (mw_merge_next(merge, &header)) {
			const struct memwatch_record_tick *tick = (const void *)header;

			readings += header->type == MEMWATCH_RECORD_RDT;
			if (header->type != MEMWATCH_RECORD_TICK)
				continue;
			ticks++;
			ok &= tick->produced > last;
			last = tick->produced;
		}
	mw_merge_stats(merge, &stats);
	tap_ok(ok, "%s: ticks are in order", what);
	tap_eq(ticks, valid ? 60 : 24, "%s: number of ticks", what);
	tap_eq(readings, valid ? 36 : 0, "%s: number of readings", what);
	tap_ok(valid ? stats.delivered == produced && !stats.malformed : stats.malformed > 0,
	       "%s: %llu records are delivered, %llu malformed", what, stats.delivered,
	       stats.malformed);
	close_rings(1);
}

/* The ring of CPU 1 cannot be opened, or only @late. CPU 0 sends records meanwhile. */
static void test_missing_ring(bool late)
{
	struct mw_merge_opts opts = { .grace_ns = GRACE_NS, .silent_ns = SILENT_NS };
	const char *what = late ? "a ring that comes late" : "a ring that never comes";
	const struct memwatch_record_header *header;
	const struct memwatch_record_lost *lost;
	unsigned int index;

	open_rings(&opts, 1, 4096);
	writer_init(&writers[1], 4096);
	put_record(&writers[0], 500000);
	next_of(merge, 500000 + SILENT_NS + 1);
	index = (unsigned int)mw_merge_cpu_add(merge, 1);
	put_record(&writers[0], 900000);
	header = next_of(merge, 900000 + SILENT_NS + 1);
	tap_ok(header && header->time_ns == 900000, "%s: nobody waits for it", what);
	if (late)
		mw_merge_ring_attach(merge, index, &writers[1].ring);
	mw_merge_lost_add(merge, index, 7, 0);
	if (late)
		put_record(&writers[1], 1000000);
	mw_merge_finish(merge, 1000000);
	header = next_of(merge, 1000000);
	lost = (const struct memwatch_record_lost *)(const void *)header;
	tap_ok(header && header->type == MEMWATCH_RECORD_LOST && header->cpu == 1,
	       "%s: there is a loss of its CPU", what);
	if (header) {
		tap_eq(lost->count, 7, "%s: the loss has the number of records", what);
		tap_eq(header->time_ns, 500000, "%s: the loss begins when the CPU became known",
		       what);
		tap_eq(lost->end_ns, 1000000, "%s: the loss ends with a record, or the stream",
		       what);
	}
	tap_eq(!!next_of(merge, 1000000), late, "%s: what is in the ring is delivered", what);
	close_rings(2);
}

int main(void)
{
	tap_start();
	test_waiting();
	test_longer_waiting();
	test_detached_ring();
	test_reader_behind();
	test_idle_cpu_wakes_up();
	test_memory();
	for (size_t i = 0; i < sizeof(frame_cases) / sizeof(*frame_cases); i++)
		test_frame(&frame_cases[i]);
	test_rdt_in_frames("readings before ticks", sizeof(struct memwatch_record_rdt), true);
	test_rdt_in_frames("readings that are too short", 24, false);
	test_missing_ring(false);
	test_missing_ring(true);
	return tap_done();
}
