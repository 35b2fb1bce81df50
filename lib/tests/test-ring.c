// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * One ring through the merge: wrapping, exactly full, and every kind of
 * nonsense that could lie in it.
 */
#include <stddef.h>

#include "../../selftests/tap.h"
#include "merge/merge.h"
#include "rings.h"
#include "base/timemath.h"

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
		.h = { .time_ns = time_ns,
		       .type = MEMWATCH_RECORD_TICK,
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

/* The oldest place in a full ring is taken by the newest record: its end is its beginning. */
static void test_full_with_gap(void)
{
	bool same;

	start(1024, 100);
	put(1000);
	for (uint64_t t = 0; t < 15; t++)
		put(100 + t);
	same = writer_room(&writer) == 0;
	for (uint64_t t = 0; t < 15; t++)
		same &= took(100 + t, 1000);
	/* nothing has been given back, so the ring is pressed and has to let it go */
	tap_ok(same && took(1000, 1000) && stats().forced == 1,
	       "a full ring whose oldest record waits is still full");
	stop();
}

struct hostile {
	const char *what;
	uint16_t type, size;
	uint32_t raw_size;
	uint16_t record_type, record_size;
	bool broken; /* the rest of the ring is lost with it */
	uint32_t records;
	uint16_t flags;
};

static const struct hostile hostiles[] = {
	{ "size 0", PERF_RECORD_SAMPLE, 0, 52, 2, 48, true, 1, 0 },
	{ "size below a header", PERF_RECORD_SAMPLE, 4, 52, 2, 48, true, 1, 0 },
	{ "size not a multiple of 8", PERF_RECORD_SAMPLE, 61, 52, 2, 48, true, 1, 0 },
	{ "size beyond the head", PERF_RECORD_SAMPLE, 0xfff8, 52, 2, 48, true, 1, 0 },
	{ "nothing but a header", PERF_RECORD_SAMPLE, 8, 52, 2, 48, false, 1, 0 },
	{ "raw size beyond the record", PERF_RECORD_SAMPLE, 64, 1000, 2, 48, false, 1, 0 },
	{ "raw size 2^32 - 1", PERF_RECORD_SAMPLE, 64, ~0U, 2, 48, false, 1, 0 },
	{ "raw size 0", PERF_RECORD_SAMPLE, 64, 0, 2, 48, false, 1, 0 },
	{ "inner size beyond raw size", PERF_RECORD_SAMPLE, 64, 52, 2, 56, false, 1, 0 },
	{ "inner size 0", PERF_RECORD_SAMPLE, 64, 52, 2, 0, false, 1, 0 },
	{ "inner size not a multiple of 8", PERF_RECORD_SAMPLE, 64, 52, 2, 47, false, 1, 0 },
	{ "a tick too short", PERF_RECORD_SAMPLE, 64, 52, 2, 40, false, 1, 0 },
	{ "a loss from the writer", PERF_RECORD_SAMPLE, 64, 52, 64, 48, false, 1, 0 },
	{ "no records", PERF_RECORD_SAMPLE, 64, 52, 2, 48, false, 0, 0 },
	{ "more records than fit", PERF_RECORD_SAMPLE, 64, 52, 2, 48, false, 4, 0 },
	{ "two of a kind that is alone", PERF_RECORD_SAMPLE, 64, 52, 9, 32, false, 2, 0 },
	{ "flags from the writer", PERF_RECORD_SAMPLE, 64, 52, 2, 48, false, 1, 1 },
	{ "a short loss", PERF_RECORD_LOST, 16, 0, 0, 0, false, 0, 0 },
};

static void test_hostile(const struct hostile *hostile)
{
	struct memwatch_record_tick tick = tick_at(20);
	uint8_t frame[64] = { 0 };
	struct mw_frame head = { { hostile->type, 0, hostile->size },
				 hostile->raw_size,
				 hostile->records };
	bool ok;

	start(4096, 0);
	put(10);
	tick.h.type = hostile->record_type;
	tick.h.size = hostile->record_size;
	tick.h.flags = hostile->flags;
	memcpy(frame, &head, sizeof(head));
	memcpy(frame + sizeof(head), &tick, sizeof(tick));
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

/* As the relay does at a tick: samples, and the tick behind them. */
static uint32_t make_parcel(uint64_t time_ns, uint32_t samples, uint8_t *to)
{
	struct memwatch_record_sample sample = {
		.h = { .time_ns = time_ns, .type = MEMWATCH_RECORD_SAMPLE, .size = sizeof(sample) },
		.begin_ns = time_ns,
	};
	struct memwatch_record_tick tick = tick_at(time_ns);

	for (uint32_t i = 0; i < samples; i++) {
		sample.rmid = i;
		memcpy(to + i * sizeof(sample), &sample, sizeof(sample));
	}
	memcpy(to + samples * sizeof(sample), &tick, sizeof(tick));
	return samples * (uint32_t)sizeof(sample) + (uint32_t)sizeof(tick);
}

static bool put_parcel(uint64_t time_ns, uint32_t samples)
{
	static uint8_t bytes[4096];

	return writer_parcel(&writer, samples + 1, bytes,
			     (uint16_t)make_parcel(time_ns, samples, bytes));
}

/* The next records are those of put_parcel(), flagged so. */
static bool took_parcel(uint64_t time_ns, uint32_t samples, uint64_t now_ns, uint16_t flags)
{
	static uint8_t want[4096];
	const uint8_t *at = want;
	bool same = true;

	make_parcel(time_ns, samples, want);
	for (uint32_t i = 0; i <= samples; i++) {
		const struct memwatch_record_header *header = take(now_ns);
		struct memwatch_record_header expected;

		memcpy(&expected, at, sizeof(expected));
		expected.flags = flags;
		same &= header && (uintptr_t)header % 8 == 0 &&
			!memcmp(header, &expected, sizeof(expected)) &&
			!memcmp(header + 1, at + sizeof(expected),
				expected.size - sizeof(expected));
		at += expected.size;
	}
	return same;
}

static void test_parcel(void)
{
	struct perf_event_header other[2] = { { .type = 99, .size = sizeof(other) } };
	bool same = true;

	start(1 << 13, 10);
	/* the smallest, larger ones, and so many that they wrap at any record */
	for (uint64_t t = 0; t < 1000; t++) {
		same &= put_parcel(1000 + 20 * t, t % 9);
		if (t)
			same &= took_parcel(980 + 20 * t, (t - 1) % 9, 1000 + 20 * t, 0);
	}
	tap_ok(same && !take(20980) && stats().malformed == 0,
	       "the records of a parcel come one by one, aligned, wrapped or not");
	/* the frame is used until its last record has been given out, not longer */
	put_parcel(30000, 8);
	put(30020);
	same = took_parcel(20980, 999 % 9, 30020, 0);
	same &= took_parcel(30000, 8, 30020, 0) && !take(30020);
	tap_ok(same && writer_room(&writer) == (1 << 13) - 64, "and then their room is given back");

	writer_put(&writer, other, sizeof(other));
	put_parcel(29000, 3);
	put_parcel(30000, 3);
	put(30040);
	static uint8_t before[1 << 13];

	memcpy(before, writer.data, sizeof(before));
	same = took_parcel(29000, 3, 30040, MEMWATCH_RECORD_F_LATE);
	tap_ok(same && stats().late == 4, "a late parcel is late record by record");
	tap_ok(!memcmp(before, writer.data, sizeof(before)),
	       "and nothing is written into the ring");
	tap_ok(took_parcel(30000, 3, 30040, 0), "one with the time of the last is not late");
	tap_ok(stats().malformed == 0 && stats().produced == 30000,
	       "a tick at the end of a parcel counts as one by itself");
	stop();
}

/* More records than there are, all alike, in a frame that ends where the ring does. */
static void test_parcel_too_many(void)
{
	struct memwatch_record_sample samples[3];
	bool same = true;

	memset(samples, 0, sizeof(samples));
	for (unsigned int i = 0; i < 3; i++)
		samples[i].h = (struct memwatch_record_header){ .time_ns = 200,
								.type = MEMWATCH_RECORD_SAMPLE,
								.size = sizeof(*samples) };
	start(1024, 0);
	for (uint64_t t = 0; t < 12; t++)
		put(100 + t);
	writer_parcel(&writer, 4, samples, sizeof(samples));
	mw_merge_finish(merge, 300);
	for (uint64_t t = 0; t < 12; t++)
		same &= took(100 + t, 300);
	same &= writer.head == 1024 && take(300) && take(300) && take(300) && !take(300);
	tap_ok(same && stats().delivered == 15 && stats().malformed == 1,
	       "a parcel with fewer records than it says ends with the last one");
	stop();
}

/* Statistics are exact in the middle of a parcel too. */
static void test_parcel_stats(void)
{
	struct memwatch_stream_cpu_stats cpu = { .sz = sizeof(cpu) };
	bool same = true;

	start(4096, 10);
	put_parcel(100, 4);
	put(200);
	for (unsigned int i = 1; i <= 5; i++) {
		take(200);
		mw_merge_cpu_stats(merge, 0, &cpu);
		same &= stats().delivered == i && cpu.delivered == i;
	}
	tap_ok(same, "delivered are those that have been given out");
	stop();

	struct memwatch_record_tick ticks[] = { tick_at(100), tick_at(100) };

	ticks[0].produced = 7;
	ticks[1].produced = 9;
	start(4096, 10);
	writer_parcel(&writer, 2, ticks, sizeof(ticks));
	put(200);
	same = take(200) && stats().produced == 7 && take(200) && stats().produced == 9;
	tap_ok(same, "every tick tells what was produced until then");
	stop();
}

/* What is not so in a parcel ends it, and is counted to the last record. */
static void test_parcel_hostile(void)
{
	static uint8_t bytes[4096];
	uint32_t size = make_parcel(100, 4, bytes), at = 2 * sizeof(struct memwatch_record_sample);
	struct memwatch_record_header good, bad;
	bool ok = true;

	memcpy(&good, bytes + at, sizeof(good));
	for (unsigned int what = 0; what < 9; what++) {
		bad = good;
		switch (what) {
		case 0:
			bad.size = 0;
			break;
		case 1:
			bad.size += 4;
			break;
		case 2:
			bad.size = 65528;
			break;
		case 3:
			bad.size = 16;
			break;
		case 4:
			bad.time_ns++;
			break;
		case 5:
			bad.flags = MEMWATCH_RECORD_F_FORCED;
			break;
		case 6:
			bad.type = MEMWATCH_RECORD_LOST;
			break;
		case 7:
			bad.type = MEMWATCH_RECORD_CPU_STATE;
			break;
		case 8:
			bad.type = 0;
			break;
		}
		start(4096, 10);
		memcpy(bytes + at, &bad, sizeof(bad));
		writer_parcel(&writer, 5, bytes, (uint16_t)size);
		put(200);
		mw_merge_finish(merge, 200);
		ok &= take(200) && take(200) && took(200, 200) && !take(200) &&
		      stats().delivered == 3 && stats().malformed == 3;
		stop();
	}
	tap_ok(ok, "a parcel ends where it makes no sense, and the rest is counted");
}

/* The ring changes after it was looked at: what comes out is valid, or nothing. */
static void test_changed(void)
{
	const struct memwatch_record_header *header;
	uint16_t sizes[] = { 0, 4, 8, 60, 65528, 65535 };
	uint32_t numbers[] = { 0, 1, 6, ~0U };
	bool ok = true;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		start(4096, 10);
		put_parcel(100, 4);
		put(200);
		ok &= mw_merge_round(merge, 200) == 1;
		memcpy(writer.data + sizeof(struct mw_frame) +
			       offsetof(struct memwatch_record_header, size),
		       &sizes[i], sizeof(sizes[i]));
		ok &= !mw_merge_next(merge, &header) && stats().malformed == 5;
		stop();
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		unsigned int taken = 0;

		start(4096, 10);
		put_parcel(100, 4);
		put(200);
		ok &= mw_merge_round(merge, 200) == 1;
		memcpy(writer.data + offsetof(struct mw_frame, records), &numbers[i],
		       sizeof(numbers[i]));
		while (mw_merge_next(merge, &header) && taken < 9)
			taken++;
		ok &= taken == (numbers[i] < 5 ? numbers[i] : 5);
		stop();
	}
	tap_ok(ok, "a frame that changed ends where it makes no sense");
}

/*
 * A ring that runs far ahead of a silent one is not read on, but when it fills
 * up it must stop waiting all the same, or it loses records.
 */
static void test_far_ahead(void)
{
	struct mw_merge_opts opts = { .grace_ns = 0, .silent_ns = 1000000, .quantum = 1 };
	struct writer other;
	bool same = true;

	writer_init(&writer, 1024);
	writer_init(&other, 1024);
	mw_merge_new(&opts, &merge);
	mw_merge_ring_add(merge, 0, &writer.ring);
	mw_merge_ring_add(merge, 1, &other.ring);
	for (uint64_t t = 0; t < 8; t++) {
		put(100 + t);
		same &= !take(50);
	}
	for (uint64_t t = 8; t < 12; t++)
		put(100 + t);
	for (uint64_t t = 0; t < 11; t++)
		same &= took(100 + t, 120);
	tap_ok(same && stats().forced == 11, "a ring far ahead of the others is pressed in time");
	stop();
	writer_free(&other);
}

/* A CPU that was away and ticks is back, even if the word of it was lost. */
static void test_back(void)
{
	struct memwatch_record_cpu offline = {
		.h = { .time_ns = 100, .type = MEMWATCH_RECORD_CPU_STATE, .size = sizeof(offline) },
		.state = MEMWATCH_CPU_OFFLINE,
	};
	struct mw_merge_opts opts = { .grace_ns = 10, .silent_ns = 1000000 };
	struct memwatch_record_tick tick = tick_at(300);
	struct writer other;
	bool ok;

	writer_init(&writer, 4096);
	writer_init(&other, 4096);
	mw_merge_new(&opts, &merge);
	mw_merge_ring_add(merge, 0, &writer.ring);
	mw_merge_ring_add(merge, 1, &other.ring);
	writer_output(&other, &offline, sizeof(offline));
	put(200);
	put(220);
	ok = take(250) && took(200, 250) && !take(250);
	tap_ok(ok, "a CPU that is away is not waited for");
	writer_output(&other, &tick, sizeof(tick));
	put(320);
	ok = took(220, 340);
	/* what CPU 1 says next may be older than 320 */
	put(500);
	ok &= !take(600);
	tap_ok(ok, "one that ticks again is, whatever it said last");
	stop();
	writer_free(&other);
}

/* A loss that the kernel did not see has its place behind what was in the ring then. */
static void test_told(void)
{
	const struct memwatch_record_lost *lost;

	start(4096, 0);
	put(10);
	put(20);
	mw_merge_lost_add(merge, 0, 5);
	put(40);
	put(50);
	tap_ok(took(10, 100) && took(20, 100), "what was there before a loss that is told");
	lost = (const void *)take(100);
	tap_ok(lost && lost->h.type == MEMWATCH_RECORD_LOST && lost->count == 5 &&
		       lost->begin_ns == 20 && lost->h.time_ns == 40,
	       "the loss, before the end of the stream");
	tap_ok(took(40, 100) && stats().lost == 5, "what came after it");
	stop();
}

int main(void)
{
	tap_start();
	test_wraps();
	test_exactly_full();
	test_full_with_gap();
	test_pending_keeps_space();
	for (size_t i = 0; i < sizeof(hostiles) / sizeof(*hostiles); i++)
		test_hostile(&hostiles[i]);
	test_resync();
	test_future();
	test_lost();
	test_parcel();
	test_parcel_too_many();
	test_parcel_stats();
	test_parcel_hostile();
	test_changed();
	test_far_ahead();
	test_back();
	test_told();
	return tap_done();
}
