// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The merge with one ring: frames that wrap, full rings, losses, and every kind of invalid
 * content.
 */
#include <stddef.h>

#include "../../selftests/tap.h"
#include "one-ring.h"

static void test_wrapping(void)
{
	bool same = true;

	/* a first frame of 72 bytes, so that frames of 64 bytes wrap at different places */
	open_ring(512, 0);
	struct memwatch_record_tick first = tick_at(1);
	uint8_t longer[56] = { 0 };

	memcpy(longer, &first, sizeof(first));
	((struct memwatch_record_header *)longer)->size = sizeof(longer);
	writer_output(&writer, longer, sizeof(longer));
	for (uint64_t t = 2; t < 1000; t++) {
		same &= put_tick(t);
		if (t == 2)
			same &= next_record(t)->time_ns == 1;
		else
			same &= next_is_tick(t - 1, t);
	}
	tap_ok(same, "a record that wraps is delivered unchanged");
	tap_eq(get_stats().malformed, 0, "no record that wraps is malformed");
	tap_eq(get_stats().lost, 0, "no record that wraps is lost");
	close_ring();
}

static void test_full_ring(void)
{
	bool same = true;
	uint64_t t = 0;

	/* the grace holds everything back, so the ring can be filled to the last byte */
	open_ring(1024, 1000);
	while (put_tick(100 + t))
		t++;
	tap_eq(t, 16, "a ring holds as many frames as fit");
	tap_eq(writer_space(&writer), 0, "a ring can be filled to the last byte");
	for (uint64_t i = 0; i < t; i++)
		same &= next_is_tick(100 + i, 200);
	tap_ok(same && !next_record(200), "all records of a full ring are delivered");
	tap_eq(writer_space(&writer), 1024, "all space of a full ring is given back");
	close_ring();
}

static void test_pending_frames(void)
{
	struct mw_merge_opts opts = { .grace_ns = 0, .silent_ns = 1000000 };
	struct writer other;
	bool same = true;

	open_two_rings(&other, 1024, &opts);
	for (uint64_t t = 0; t < 11; t++)
		put_tick(100 + t);
	tap_ok(!next_record(50), "nothing is delivered before a silent ring has timed out");
	tap_eq(writer_space(&writer), 1024 - 11 * 64,
	       "the space of pending frames is not given back");
	for (uint64_t t = 11; put_tick(100 + t); t++)
		;
	for (uint64_t t = 0; t < 15; t++)
		same &= next_is_tick(100 + t, 120);
	tap_ok(same, "a ring that fills up stops waiting for a silent ring");
	tap_eq(get_stats().forced, 15, "records that did not wait for a silent ring are forced");
	tap_ok(next_is_tick(115, 2000000), "the last record is delivered after the time-out");
	close_ring();
	writer_free(&other);
}

/* The first frame of a full ring is pending: the writer's position equals the reader's. */
static void test_full_ring_pending(void)
{
	bool same;

	open_ring(1024, 100);
	put_tick(1000);
	for (uint64_t t = 0; t < 15; t++)
		put_tick(100 + t);
	same = writer_space(&writer) == 0;
	for (uint64_t t = 0; t < 15; t++)
		same &= next_is_tick(100 + t, 1000);
	tap_ok(same, "a full ring delivers the records behind a pending one");
	tap_ok(next_is_tick(1000, 1000), "a full ring whose first frame is pending is not empty");
	tap_eq(get_stats().forced, 1, "the pending record of a full ring is forced");
	close_ring();
}

/*
 * A frame whose header, sizes and first record are as given. @broken: its length is not valid,
 * so that everything behind it in the ring is lost.
 */
struct invalid_frame {
	const char *what;
	uint16_t type, size;
	uint32_t raw_size;
	uint16_t record_type, record_size;
	bool broken;
	uint32_t records;
	uint16_t flags;
};

static const struct invalid_frame invalid_frames[] = {
	{ "size 0", PERF_RECORD_SAMPLE, 0, 52, 2, 48, true, 1, 0 },
	{ "size below that of a header", PERF_RECORD_SAMPLE, 4, 52, 2, 48, true, 1, 0 },
	{ "size not a multiple of 8", PERF_RECORD_SAMPLE, 61, 52, 2, 48, true, 1, 0 },
	{ "size beyond the head", PERF_RECORD_SAMPLE, 0xfff8, 52, 2, 48, true, 1, 0 },
	{ "only a header", PERF_RECORD_SAMPLE, 8, 52, 2, 48, false, 1, 0 },
	{ "raw size beyond the frame", PERF_RECORD_SAMPLE, 64, 1000, 2, 48, false, 1, 0 },
	{ "raw size 2^32 - 1", PERF_RECORD_SAMPLE, 64, ~0U, 2, 48, false, 1, 0 },
	{ "raw size 0", PERF_RECORD_SAMPLE, 64, 0, 2, 48, false, 1, 0 },
	{ "record beyond the raw size", PERF_RECORD_SAMPLE, 64, 52, 2, 56, false, 1, 0 },
	{ "record of size 0", PERF_RECORD_SAMPLE, 64, 52, 2, 0, false, 1, 0 },
	{ "record size not a multiple of 8", PERF_RECORD_SAMPLE, 64, 52, 2, 47, false, 1, 0 },
	{ "a tick that is too short", PERF_RECORD_SAMPLE, 64, 52, 2, 40, false, 1, 0 },
	{ "a loss record from the writer", PERF_RECORD_SAMPLE, 64, 52, 64, 48, false, 1, 0 },
	{ "no records", PERF_RECORD_SAMPLE, 64, 52, 2, 48, false, 0, 0 },
	{ "more records than fit", PERF_RECORD_SAMPLE, 64, 52, 2, 48, false, 4, 0 },
	{ "two records that must be single", PERF_RECORD_SAMPLE, 64, 52, 9, 32, false, 2, 0 },
	{ "flags from the writer", PERF_RECORD_SAMPLE, 64, 52, 2, 48, false, 1, 1 },
	{ "a PERF_RECORD_LOST that is too short", PERF_RECORD_LOST, 16, 0, 0, 0, false, 0, 0 },
};

static void test_invalid_frame(const struct invalid_frame *test)
{
	struct memwatch_record_tick tick = tick_at(20);
	uint8_t frame[64] = { 0 };
	struct mw_frame head = { { test->type, 0, test->size }, test->raw_size, test->records };

	open_ring(4096, 0);
	put_tick(10);
	tick.h.type = test->record_type;
	tick.h.size = test->record_size;
	tick.h.flags = test->flags;
	memcpy(frame, &head, sizeof(head));
	memcpy(frame + sizeof(head), &tick, sizeof(tick));
	writer_put(&writer, frame, test->broken || test->size > 64 ? 64 : test->size);
	put_tick(30);
	mw_merge_finish(merge, 40);
	tap_ok(next_is_tick(10, 40), "invalid frame, %s: the record before it is delivered",
	       test->what);
	if (!test->broken)
		tap_ok(next_is_tick(30, 40), "invalid frame, %s: the record behind it is delivered",
		       test->what);
	tap_ok(!next_record(40), "invalid frame, %s: nothing else is delivered", test->what);
	tap_eq(get_stats().malformed, 1, "invalid frame, %s: it is counted", test->what);
	tap_eq(writer_space(&writer), 4096, "invalid frame, %s: all space is given back",
	       test->what);
	close_ring();
}

static void test_garbage(void)
{
	uint8_t garbage[256];
	bool same;

	open_ring(4096, 0);
	memset(garbage, 0xff, sizeof(garbage));
	writer_put(&writer, garbage, sizeof(garbage));
	same = !next_record(100);
	put_tick(200);
	put_tick(201);
	same &= next_is_tick(200, 300);
	tap_ok(same, "after garbage, reading continues at the head");
	tap_eq(get_stats().malformed, 1, "garbage is counted once");
	writer.head += 100000;
	while (next_record(400))
		;
	tap_eq(get_stats().malformed, 2, "a head beyond the size of the ring is counted");
	close_ring();
}

static void test_future_times(void)
{
	struct memwatch_record_tick tick = tick_at(~0ULL);
	bool same;

	open_ring(4096, 0);
	writer_output(&writer, &tick, sizeof(tick));
	tick = tick_at(1000 + MW_MERGE_FUTURE_NS + 1);
	writer_output(&writer, &tick, sizeof(tick));
	put_tick(500);
	put_tick(501);
	same = next_is_tick(500, 1000);
	tap_ok(same, "records behind one from the far future are delivered");
	tap_eq(get_stats().malformed, 2, "records from the far future are malformed");
	close_ring();
}

static void check_lost(const struct memwatch_record_lost *lost, const char *what, uint64_t count,
		       uint64_t begin_ns, uint64_t end_ns)
{
	if (!tap_ok(lost && lost->h.type == MEMWATCH_RECORD_LOST, "%s: there is a record", what))
		return;
	tap_eq(lost->count, count, "%s: number of lost records", what);
	tap_eq(lost->h.time_ns, begin_ns, "%s: time of the record before", what);
	tap_eq(lost->end_ns, end_ns, "%s: time of the record behind, or of the end", what);
}

static void test_lost(void)
{
	const struct memwatch_record_lost *lost;
	struct {
		struct perf_event_header header;
		uint64_t id, lost;
	} record = { { PERF_RECORD_LOST, 0, 24 }, 1, 1000 };

	open_ring(4096, 0);
	put_tick(10);
	writer_put(&writer, &record, sizeof(record));
	record.lost = 234;
	writer_put(&writer, &record, sizeof(record));
	put_tick(50);
	put_tick(60);
	tap_ok(next_is_tick(10, 100), "the record before a loss is delivered");
	lost = (const void *)next_record(100);
	check_lost(lost, "losses in a row", 1234, 10, 50);
	tap_ok(next_is_tick(50, 100), "the record behind a loss is delivered");
	record.lost = 7;
	writer_put(&writer, &record, sizeof(record));
	next_record(100);
	mw_merge_lost_add(merge, 0, 1, 0);
	mw_merge_finish(merge, 99);
	next_is_tick(60, 100);
	for (lost = (const void *)next_record(100); lost && lost->h.type != MEMWATCH_RECORD_LOST;)
		lost = (const void *)next_record(100);
	check_lost(lost, "a loss at the end of the stream", 8, 60, 99);
	tap_eq(get_stats().lost, 1242, "all lost records are counted");
	tap_eq(get_stats().delivered, 3, "records of losses do not count as delivered");
	close_ring();
}

/* Between two ticks, a CPU reports events before it reports what it measured. */
static void test_lost_begin(void)
{
	struct memwatch_record_rmid event = {
		.h = { .time_ns = 35, .type = MEMWATCH_RECORD_RMID_ALLOC, .size = sizeof(event) },
	};
	struct {
		struct perf_event_header header;
		uint64_t id, lost;
	} record = { { PERF_RECORD_LOST, 0, 24 }, 1, 3 };
	struct mw_merge_opts opts = { .grace_ns = 10, .silent_ns = 1000000 };
	const struct memwatch_record_header *got;
	struct writer other;

	open_two_rings(&other, 4096, &opts);
	writer_put(&other, &record, sizeof(record));
	put_tick(20);
	put_tick(30);
	writer_output(&writer, &event, sizeof(event));
	writer_put(&writer, &record, sizeof(record));
	put_tick(40);
	put_tick(90);
	for (uint64_t t = 50; t < 100; t += 10) {
		struct memwatch_record_tick tick = tick_at(t);

		writer_output(&other, &tick, sizeof(tick));
	}
	tap_ok(next_is_tick(20, 100), "the first record of another ring comes first");
	check_lost((const void *)next_record(100), "a loss before any record of its ring", 3, 20,
		   50);
	tap_ok(next_is_tick(30, 100), "the tick before a loss is delivered");
	check_lost((const void *)next_record(100), "a loss after an event", 3, 30, 40);
	got = next_record(100);
	tap_ok(got && got->type == MEMWATCH_RECORD_RMID_ALLOC,
	       "a loss begins before an event that is later than the last tick");
	close_ring();
	writer_free(&other);
}

/*
 * The merge does not scan a ring that is far ahead of a silent one. When this ring fills up, it
 * must be delivered nevertheless, or it would lose records.
 */
static void test_ring_far_ahead(void)
{
	struct mw_merge_opts opts = { .grace_ns = 0, .silent_ns = 1000000, .quantum = 1 };
	struct writer other;
	bool same = true;

	open_two_rings(&other, 1024, &opts);
	for (uint64_t t = 0; t < 8; t++) {
		put_tick(100 + t);
		same &= !next_record(50);
	}
	tap_ok(same, "a ring ahead of a silent one waits");
	for (uint64_t t = 8; t < 12; t++)
		put_tick(100 + t);
	same = true;
	for (uint64_t t = 0; t < 11; t++)
		same &= next_is_tick(100 + t, 120);
	tap_ok(same, "a ring far ahead of a silent one does not wait when it fills up");
	tap_eq(get_stats().forced, 11, "the records of a ring that did not wait are forced");
	close_ring();
	writer_free(&other);
}

static void test_cpu_back_online(void)
{
	struct memwatch_record_cpu offline = {
		.h = { .time_ns = 100, .type = MEMWATCH_RECORD_CPU_STATE, .size = sizeof(offline) },
		.state = MEMWATCH_CPU_OFFLINE,
	};
	struct mw_merge_opts opts = { .grace_ns = 10, .silent_ns = 1000000 };
	struct memwatch_record_tick tick = tick_at(300);
	struct writer other;
	bool ok;

	open_two_rings(&other, 4096, &opts);
	writer_output(&other, &offline, sizeof(offline));
	put_tick(200);
	put_tick(220);
	ok = next_record(250) && next_is_tick(200, 250) && !next_record(250);
	tap_ok(ok, "the stream does not wait for an offline CPU");
	writer_output(&other, &tick, sizeof(tick));
	put_tick(320);
	tap_ok(next_is_tick(220, 340), "records before the tick of an offline CPU are delivered");
	put_tick(500);
	tap_ok(!next_record(600), "the stream waits for a CPU that ticks after it was offline");
	close_ring();
	writer_free(&other);
}

static void test_reported_loss(void)
{
	open_ring(4096, 0);
	put_tick(10);
	put_tick(20);
	mw_merge_lost_add(merge, 0, 5, 0);
	put_tick(40);
	put_tick(50);
	tap_ok(next_is_tick(10, 100) && next_is_tick(20, 100),
	       "records before a reported loss are delivered");
	check_lost((const void *)next_record(100), "a reported loss", 5, 20, 40);
	tap_ok(next_is_tick(40, 100), "the record behind a reported loss is delivered");
	tap_eq(get_stats().lost, 5, "a reported loss is counted");
	close_ring();
}

/* A CPU without a ring keeps the first records, which are sent when it has one, and loses others.
 */
static void test_loss_behind_kept_records(void)
{
	open_ring(4096, 0);
	put_tick(10);
	mw_merge_lost_add(merge, 0, 5, 45);
	put_tick(30);
	put_tick(40);
	put_tick(50);
	put_tick(60);
	tap_ok(next_is_tick(10, 100), "the record before a CPU lost its ring is delivered");
	check_lost((const void *)next_record(100), "a loss behind what the CPU has kept", 5, 10,
		   45);
	tap_ok(next_is_tick(30, 100) && next_is_tick(40, 100) && next_is_tick(50, 100),
	       "what the CPU has kept is delivered in order");
	mw_merge_lost_add(merge, 0, 1, 0);
	put_tick(70);
	put_tick(80);
	next_is_tick(60, 100);
	check_lost((const void *)next_record(100), "a later loss", 1, 60, 70);
	close_ring();
}

int main(void)
{
	tap_start();
	test_wrapping();
	test_full_ring();
	test_full_ring_pending();
	test_pending_frames();
	for (size_t i = 0; i < sizeof(invalid_frames) / sizeof(*invalid_frames); i++)
		test_invalid_frame(&invalid_frames[i]);
	test_garbage();
	test_future_times();
	test_lost();
	test_lost_begin();
	test_ring_far_ahead();
	test_cpu_back_online();
	test_reported_loss();
	test_loss_behind_kept_records();
	return tap_done();
}
