// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * One ring through the merge: wrapping, exactly full, and every kind of
 * nonsense that could lie in it.
 */
#include <stddef.h>

#include "../../selftests/tap.h"
#include "merge.h"
#include "rings.h"
#include "timemath.h"

static struct mw_merge *merge;
static struct writer writer;

static void start(size_t size, uint64_t grace_ns)
{
	struct mw_merge_opts opts = { .grace_ns = grace_ns, .silent_ns = 1000000 };

	writer_init(&writer, size);
	mw_merge_new(&opts, &merge);
	mw_merge_ring_add(merge, 0, &writer.ring);
}

static void stop(void)
{
	mw_merge_free(merge);
	writer_free(&writer);
}

static struct memwatch_record_tick tick_at(uint64_t time_ns)
{
	return (struct memwatch_record_tick){
		.h = { .time_ns = time_ns, .type = MEMWATCH_RECORD_TICK,
		       .size = sizeof(struct memwatch_record_tick) },
		.expected_ns = time_ns * 3,
		.produced = time_ns,
		.dropped = ~time_ns,
	};
}

static bool put(uint64_t time_ns)
{
	struct memwatch_record_tick tick = tick_at(time_ns);

	return writer_output(&writer, &tick, sizeof(tick));
}

static const struct memwatch_record_header *take(uint64_t now_ns)
{
	const struct memwatch_record_header *header;

	if (mw_merge_next(merge, &header))
		return header;
	if (mw_merge_round(merge, now_ns) == 1 && mw_merge_next(merge, &header))
		return header;
	return NULL;
}

/* The next record is the tick of this time, to the last bit. */
static bool took(uint64_t time_ns, uint64_t now_ns)
{
	const struct memwatch_record_tick *got = (const void *)take(now_ns);
	struct memwatch_record_tick want = tick_at(time_ns);

	if (!got)
		return false;
	want.h.flags = got->h.flags;
	return !memcmp(got, &want, sizeof(want));
}

static struct memwatch_stream_stats stats(void)
{
	struct memwatch_stream_stats stats = { .sz = sizeof(stats) };

	mw_merge_stats(merge, &stats);
	return stats;
}

static void test_wraps(void)
{
	bool same = true;

	/* 64-byte frames, and one of 72 first, so that all the others wrap sooner or later */
	start(512, 0);
	struct memwatch_record_tick first = tick_at(1);
	uint8_t longer[56] = { 0 };

	memcpy(longer, &first, sizeof(first));
	((struct memwatch_record_header *)longer)->size = sizeof(longer);
	writer_output(&writer, longer, sizeof(longer));
	for (uint64_t t = 2; t < 1000; t++) {
		same &= put(t);
		if (t == 2)
			same &= take(t)->time_ns == 1;
		else
			same &= took(t - 1, t);
	}
	tap_ok(same, "a record that wraps is the same record");
	tap_ok(stats().malformed == 0 && stats().lost == 0, "nothing malformed, nothing lost");
	stop();
}

static void test_exactly_full(void)
{
	bool same = true;
	uint64_t t = 0;

	/* grace holds everything back, so the ring fills up to the last byte */
	start(1024, 1000);
	while (put(100 + t))
		t++;
	tap_ok(t == 16 && writer_room(&writer) == 0, "a ring takes exactly what fits");
	/* a second, younger ring keeps the first waiting without being silent */
	for (uint64_t i = 0; i < t; i++)
		same &= took(100 + i, 200);
	tap_ok(same && !take(200), "an exactly full ring is not an empty one");
	tap_ok(writer_room(&writer) == 1024, "and is given back whole");
	stop();
}

static void test_pending_keeps_space(void)
{
	/* Everything is pending, and the ring exactly full: nothing may be given back. */
	struct mw_merge_opts opts = { .grace_ns = 0, .silent_ns = 1000000 };
	struct writer other;
	bool same = true;

	writer_init(&writer, 1024);
	writer_init(&other, 1024);
	mw_merge_new(&opts, &merge);
	mw_merge_ring_add(merge, 0, &writer.ring);
	mw_merge_ring_add(merge, 1, &other.ring);
	for (uint64_t t = 0; t < 11; t++)
		put(100 + t);
	tap_ok(!take(50), "nothing is older than what a silent ring may still say");
	tap_ok(writer_room(&writer) == 1024 - 11 * 64, "what is pending stays in the ring");
	for (uint64_t t = 11; put(100 + t); t++)
		;
	for (uint64_t t = 0; t < 15; t++)
		same &= took(100 + t, 120);
	tap_ok(same, "a pressed ring stops waiting for a silent one, in order");
	tap_ok(stats().forced == 15, "and what it releases is flagged forced");
	tap_ok(took(115, 2000000), "the last one follows after the time-out");
	stop();
	writer_free(&other);
}

struct hostile {
	const char *what;
	uint16_t type, size;
	uint32_t raw_size;
	uint16_t record_type, record_size;
	bool broken; /* the rest of the ring is lost with it */
};

static const struct hostile hostiles[] = {
	{ "size 0", PERF_RECORD_SAMPLE, 0, 52, 2, 48, true },
	{ "size below a header", PERF_RECORD_SAMPLE, 4, 52, 2, 48, true },
	{ "size not a multiple of 8", PERF_RECORD_SAMPLE, 61, 52, 2, 48, true },
	{ "size beyond the head", PERF_RECORD_SAMPLE, 0xfff8, 52, 2, 48, true },
	{ "nothing but a header", PERF_RECORD_SAMPLE, 8, 52, 2, 48, false },
	{ "raw size beyond the record", PERF_RECORD_SAMPLE, 64, 1000, 2, 48, false },
	{ "raw size 2^32 - 1", PERF_RECORD_SAMPLE, 64, ~0U, 2, 48, false },
	{ "raw size 0", PERF_RECORD_SAMPLE, 64, 0, 2, 48, false },
	{ "inner size beyond raw size", PERF_RECORD_SAMPLE, 64, 52, 2, 56, false },
	{ "inner size 0", PERF_RECORD_SAMPLE, 64, 52, 2, 0, false },
	{ "inner size not a multiple of 8", PERF_RECORD_SAMPLE, 64, 52, 2, 47, false },
	{ "a tick too short", PERF_RECORD_SAMPLE, 64, 52, 2, 40, false },
	{ "a loss from the writer", PERF_RECORD_SAMPLE, 64, 52, 64, 48, false },
	{ "a short loss", PERF_RECORD_LOST, 16, 0, 0, 0, false },
};

static void test_hostile(const struct hostile *hostile)
{
	struct memwatch_record_tick tick = tick_at(20);
	uint8_t frame[64] = { 0 };
	struct perf_event_header header = { hostile->type, 0, hostile->size };
	bool ok;

	start(4096, 0);
	put(10);
	tick.h.type = hostile->record_type;
	tick.h.size = hostile->record_size;
	memcpy(frame, &header, 8);
	memcpy(frame + 8, &hostile->raw_size, 4);
	memcpy(frame + 12, &tick, sizeof(tick));
	writer_put(&writer, frame, hostile->broken || hostile->size > 64 ? 64 : hostile->size);
	put(30);
	mw_merge_finish(merge, 40);
	ok = took(10, 40);
	/* a record whose length is wrong takes what follows with it, up to the head */
	if (!hostile->broken)
		ok &= took(30, 40);
	ok &= !take(40) && stats().malformed == 1 && writer_room(&writer) == 4096;
	stop();
	tap_ok(ok, "hostile: %s", hostile->what);
}

static void test_resync(void)
{
	uint8_t garbage[256];
	bool same;

	start(4096, 0);
	memset(garbage, 0xff, sizeof(garbage));
	writer_put(&writer, garbage, sizeof(garbage));
	same = !take(100);
	put(200);
	put(201);
	same &= took(200, 300);
	tap_ok(same && stats().malformed == 1, "after garbage the ring is read on from the head");
	writer.head += 100000; /* a writer that is no writer */
	while (take(400))
		;
	tap_ok(stats().malformed == 2, "a head that ran away is noticed");
	stop();
}

static void test_future(void)
{
	struct memwatch_record_tick tick = tick_at(~0ULL);
	bool same;

	start(4096, 0);
	writer_output(&writer, &tick, sizeof(tick));
	tick = tick_at(1000 + MW_MERGE_FUTURE_NS + 1);
	writer_output(&writer, &tick, sizeof(tick));
	put(500);
	put(501);
	same = took(500, 1000);
	tap_ok(same && stats().malformed == 2, "a stamp from the far future is malformed");
	stop();
}

static void test_lost(void)
{
	const struct memwatch_record_lost *lost;
	struct {
		struct perf_event_header header;
		uint64_t id, lost;
	} record = { { PERF_RECORD_LOST, 0, 24 }, 1, 1000 };

	start(4096, 0);
	put(10);
	writer_put(&writer, &record, sizeof(record));
	record.lost = 234;
	writer_put(&writer, &record, sizeof(record));
	put(50);
	put(60);
	tap_ok(took(10, 100), "what was before a loss");
	lost = (const void *)take(100);
	tap_ok(lost && lost->h.type == MEMWATCH_RECORD_LOST && lost->count == 1234,
	       "a loss is the number of records, not of messages about it");
	tap_ok(lost && lost->begin_ns == 10 && lost->h.time_ns == 50,
	       "a loss lies between its neighbours");
	tap_ok(took(50, 100), "what was after it");
	record.lost = 7;
	writer_put(&writer, &record, sizeof(record));
	take(100);
	mw_merge_lost_add(merge, 0, 1);
	mw_merge_finish(merge, 99);
	took(60, 100);
	for (lost = (const void *)take(100); lost && lost->h.type != MEMWATCH_RECORD_LOST;)
		lost = (const void *)take(100);
	tap_ok(lost && lost->count == 8 && lost->begin_ns == 60 && lost->h.time_ns == 99,
	       "a loss at the end ends with the stream");
	tap_ok(stats().lost == 1242 && stats().delivered == 3, "lost and delivered are exact");
	stop();
}

int main(void)
{
	tap_start();
	test_wraps();
	test_exactly_full();
	test_pending_keeps_space();
	for (size_t i = 0; i < sizeof(hostiles) / sizeof(*hostiles); i++)
		test_hostile(&hostiles[i]);
	test_resync();
	test_future();
	test_lost();
	return tap_done();
}
