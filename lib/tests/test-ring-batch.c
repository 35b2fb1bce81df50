// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The merge with one ring of batches: several records that were sent at once.
 */
#include <stddef.h>

#include "../../selftests/tap.h"
#include "one-ring.h"

/* A batch of samples and a tick, as the relay sends it at a tick. Returns its size. */
static uint32_t make_batch(uint64_t time_ns, uint32_t samples, uint8_t *to)
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

static bool put_batch(uint64_t time_ns, uint32_t samples)
{
	static uint8_t bytes[4096];

	return writer_batch(&writer, samples + 1, bytes,
			    (uint16_t)make_batch(time_ns, samples, bytes));
}

/* The next records are those of put_batch(), with these flags. */
static bool next_is_batch(uint64_t time_ns, uint32_t samples, uint64_t now_ns, uint16_t flags)
{
	static uint8_t want[4096];
	const uint8_t *at = want;
	bool same = true;

	make_batch(time_ns, samples, want);
	for (uint32_t i = 0; i <= samples; i++) {
		const struct memwatch_record_header *header = next_record(now_ns);
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

static void test_batches(void)
{
	bool same = true;

	open_ring(1 << 13, 10);
	/* of all sizes, so that batches wrap at any record */
	for (uint64_t t = 0; t < 1000; t++) {
		same &= put_batch(1000 + 20 * t, t % 9);
		if (t)
			same &= next_is_batch(980 + 20 * t, (t - 1) % 9, 1000 + 20 * t, 0);
	}
	tap_ok(same && !next_record(20980), "the records of a batch are delivered one by one");
	tap_eq(get_stats().malformed, 0, "no record of a batch that wraps is malformed");
	put_batch(30000, 8);
	put_tick(30020);
	same = next_is_batch(20980, 999 % 9, 30020, 0);
	same &= next_is_batch(30000, 8, 30020, 0) && !next_record(30020);
	tap_ok(same, "the records of a batch are valid until the last one is delivered");
	tap_eq(writer_space(&writer), (1 << 13) - 64, "the space of a batch is given back then");
	close_ring();
}

static void test_late_batch(void)
{
	struct perf_event_header other[2] = { { .type = 99, .size = sizeof(other) } };
	static uint8_t before[1 << 13];

	open_ring(sizeof(before), 10);
	put_batch(30000, 8);
	put_tick(30020);
	tap_ok(next_is_batch(30000, 8, 30020, 0), "a batch before a late one is delivered");
	writer_put(&writer, other, sizeof(other));
	put_batch(29000, 3);
	put_batch(30000, 3);
	put_tick(30040);
	memcpy(before, writer.data, sizeof(before));
	tap_ok(next_is_batch(29000, 3, 30040, MEMWATCH_RECORD_F_LATE),
	       "all records of a late batch have the flag LATE");
	tap_eq(get_stats().late, 4, "all records of a late batch are counted as late");
	tap_ok(!memcmp(before, writer.data, sizeof(before)), "flags are not written into the ring");
	tap_ok(next_is_batch(30000, 3, 30040, 0),
	       "a batch with the time of the last one is not late");
	tap_eq(get_stats().malformed, 0, "other records of perf are not malformed");
	tap_eq(get_stats().produced, 30000, "the tick at the end of a batch counts as produced");
	close_ring();
}

/* A number of records that is too large, in a frame that ends where the ring ends. */
static void test_batch_too_short(void)
{
	struct memwatch_record_sample samples[3];
	const size_t frame = sizeof(struct mw_frame) + sizeof(samples), before = 1024 - frame;
	const uint64_t ticks = before / 64;
	struct perf_event_header rest[8] = { { .type = 99, .size = (uint16_t)(before % 64) } };
	bool same = true;

	memset(samples, 0, sizeof(samples));
	for (unsigned int i = 0; i < 3; i++)
		samples[i].h = (struct memwatch_record_header){ .time_ns = 200,
								.type = MEMWATCH_RECORD_SAMPLE,
								.size = sizeof(*samples) };
	open_ring(1024, 0);
	for (uint64_t t = 0; t < ticks; t++)
		put_tick(100 + t);
	if (rest->size)
		writer_put(&writer, rest, rest->size);
	writer_batch(&writer, 4, samples, sizeof(samples));
	mw_merge_finish(merge, 300);
	for (uint64_t t = 0; t < ticks; t++)
		same &= next_is_tick(100 + t, 300);
	same &= writer.head == 1024 && next_record(300) && next_record(300) && next_record(300) &&
		!next_record(300);
	tap_ok(same, "if a batch holds fewer records than it states, nothing follows the last one");
	tap_eq(get_stats().delivered, ticks + 3,
	       "if a batch holds fewer records than it states, those it holds are delivered");
	tap_eq(get_stats().malformed, 1,
	       "a batch that holds fewer records than it states counts as malformed");
	close_ring();
}

static void test_batch_stats(void)
{
	struct memwatch_stream_cpu_stats cpu = { .sz = sizeof(cpu) };
	bool same = true;

	open_ring(4096, 10);
	put_batch(100, 4);
	put_tick(200);
	for (unsigned int i = 1; i <= 5; i++) {
		next_record(200);
		mw_merge_cpu_stats(merge, 0, &cpu);
		same &= get_stats().delivered == i && cpu.delivered == i;
	}
	tap_ok(same, "only records that were read count as delivered");
	close_ring();

	struct memwatch_record_tick ticks[] = { tick_at(100), tick_at(100) };

	ticks[0].produced = 7;
	ticks[1].produced = 9;
	open_ring(4096, 10);
	writer_batch(&writer, 2, ticks, sizeof(ticks));
	put_tick(200);
	same = next_record(200) && get_stats().produced == 7 && next_record(200) &&
	       get_stats().produced == 9;
	tap_ok(same, "a tick counts as produced only after it was read");
	close_ring();
}

/* A batch whose third record of five is not valid; these fields differ if they are not 0. */
static const struct invalid_record {
	const char *what;
	struct memwatch_record_header header;
	bool zero_size, zero_type;
} invalid_records[] = {
	{ "size 0", { 0 }, true, false },
	{ "a size that is not a multiple of 8",
	  { .size = sizeof(struct memwatch_record_sample) + 4 },
	  false,
	  false },
	{ "a size beyond the batch", { .size = 65528 }, false, false },
	{ "a size below that of its type", { .size = 16 }, false, false },
	{ "another time", { .time_ns = 101 }, false, false },
	{ "a flag", { .flags = MEMWATCH_RECORD_F_FORCED }, false, false },
	{ "a loss record", { .type = MEMWATCH_RECORD_LOST }, false, false },
	{ "a CPU state", { .type = MEMWATCH_RECORD_CPU_STATE }, false, false },
	{ "type 0", { 0 }, false, true },
};

static void test_invalid_record(const struct invalid_record *test)
{
	static uint8_t bytes[4096];
	uint32_t size = make_batch(100, 4, bytes), at = 2 * sizeof(struct memwatch_record_sample);
	struct memwatch_record_header header;
	bool ok;

	memcpy(&header, bytes + at, sizeof(header));
	if (test->header.size || test->zero_size)
		header.size = test->header.size;
	if (test->header.type || test->zero_type)
		header.type = test->header.type;
	if (test->header.time_ns)
		header.time_ns = test->header.time_ns;
	header.flags = test->header.flags;
	memcpy(bytes + at, &header, sizeof(header));

	open_ring(4096, 10);
	writer_batch(&writer, 5, bytes, (uint16_t)size);
	put_tick(200);
	mw_merge_finish(merge, 200);
	ok = next_record(200) && next_record(200) && next_is_tick(200, 200) && !next_record(200);
	tap_ok(ok, "a batch ends before a record with %s", test->what);
	tap_eq(get_stats().delivered, 3, "records before one with %s are delivered", test->what);
	tap_eq(get_stats().malformed, 3, "a record with %s and those behind it are malformed",
	       test->what);
	close_ring();
}

/* The writer changes a frame after it was scanned. */
static void test_changed_frame(void)
{
	const struct memwatch_record_header *header;
	const uint16_t sizes[] = { 0, 4, 8, 60, 65528, 65535 };
	const uint32_t numbers[] = { 0, 1, 6, ~0U };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		open_ring(4096, 10);
		put_batch(100, 4);
		put_tick(200);
		tap_eq(mw_merge_round(merge, 200), 1, "a frame is ready before it changes");
		memcpy(writer.data + sizeof(struct mw_frame) +
			       offsetof(struct memwatch_record_header, size),
		       &sizes[i], sizeof(sizes[i]));
		tap_ok(!mw_merge_next(merge, &header),
		       "a frame whose first record got size %u is not delivered", sizes[i]);
		tap_eq(get_stats().malformed, 5,
		       "a frame whose first record got size %u is counted", sizes[i]);
		close_ring();
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		unsigned int count = 0;

		open_ring(4096, 10);
		put_batch(100, 4);
		put_tick(200);
		tap_eq(mw_merge_round(merge, 200), 1, "a frame is ready before its number changes");
		memcpy(writer.data + offsetof(struct mw_frame, records), &numbers[i],
		       sizeof(numbers[i]));
		while (mw_merge_next(merge, &header) && count < 9)
			count++;
		tap_eq(count, numbers[i] < 5 ? numbers[i] : 5,
		       "a frame whose number became %u delivers valid records only", numbers[i]);
		close_ring();
	}
}

int main(void)
{
	tap_start();
	test_batches();
	test_late_batch();
	test_batch_too_short();
	test_batch_stats();
	for (size_t i = 0; i < sizeof(invalid_records) / sizeof(*invalid_records); i++)
		test_invalid_record(&invalid_records[i]);
	test_changed_frame();
	return tap_done();
}
