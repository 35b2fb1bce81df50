// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader of rings of access samples: all kinds of records, records that wrap, are cut off, or
 * are invalid, and rings that are full of random bytes. The lines of a trace that items become.
 */
#include <linux/perf_event.h>
#include <sys/mman.h>

#include "access-kit.h"
#include "stale-kit.h"
#include "stale/access-period.h"
#include "stale/access-text.h"

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"

#define SEED 20261125

static uint64_t scratch[MW_ACCESS_RECORD_ROOM / 8];
static struct writer writer;
static struct mw_access_reader reader;
static struct record record;

static void open_reader(size_t size)
{
	writer_init(&writer, size);
	mw_access_reader_init(&reader, &writer.ring, scratch);
}

static struct mw_access_item some_sample(struct prng *prng)
{
	return (struct mw_access_item){
		.kind = MW_ACCESS_SAMPLE,
		.cpu = (uint32_t)prng_below(prng, 8192),
		.pid = (uint32_t)prng_next(prng),
		.tid = (uint32_t)prng_next(prng),
		.time_ns = prng_next(prng),
		.id = prng_next(prng),
		.address = prng_next(prng) >> 1 | 1,
		.ip = prng_next(prng),
		.period = prng_next(prng),
		.data_src = prng_next(prng),
	};
}

static bool same_sample(const struct mw_access_item *a, const struct mw_access_item *b)
{
	return a->kind == b->kind && a->cpu == b->cpu && a->pid == b->pid && a->tid == b->tid &&
	       a->time_ns == b->time_ns && a->id == b->id && a->address == b->address &&
	       a->ip == b->ip && a->period == b->period && a->data_src == b->data_src;
}

/* A ring of 256 bytes holds three samples of 72 bytes, so that records begin and wrap anywhere. */
static void test_samples(void)
{
	struct prng in = { SEED }, out = { SEED }, choice = { SEED + 1 };
	uint64_t written = 0, read = 0, wrong = 0;
	struct mw_access_item item, want;

	open_reader(256);
	while (read < 20000) {
		struct prng before = in;

		want = some_sample(&in);
		if (prng_below(&choice, 3) && write_sample(&writer, 2, &want)) {
			written++;
			continue;
		}
		in = before;
		if (!mw_access_reader_next(&reader, &item))
			continue;
		want = some_sample(&out);
		wrong += !same_sample(&item, &want);
		read++;
	}
	tap_eq(wrong, 0, "samples are read as they were written, also where they wrap");
	tap_eq(reader.counts.samples, 20000, "samples are counted");
	while (mw_access_reader_next(&reader, &item))
		read++;
	tap_eq(read, written, "no sample is lost or read twice");
	tap_eq(writer.tail, writer.head, "the space of what was read is given back");
	writer_free(&writer);
}

static void test_filters(void)
{
	struct mw_access_item sample = { .address = 0x1000, .ip = 0xffffffff81000000 }, item;

	open_reader(4096);
	sample.address = 0;
	write_sample(&writer, PERF_RECORD_MISC_USER, &sample);
	sample.address = 0xffff888000000000;
	write_sample(&writer, PERF_RECORD_MISC_KERNEL, &sample);
	sample.address = 0x1000;
	write_sample(&writer, PERF_RECORD_MISC_GUEST_USER, &sample);
	write_sample(&writer, PERF_RECORD_MISC_GUEST_KERNEL, &sample);
	write_sample(&writer, PERF_RECORD_MISC_KERNEL | PERF_RECORD_MISC_EXACT_IP, &sample);
	tap_ok(mw_access_reader_next(&reader, &item) && item.address == 0x1000 &&
		       item.ip == 0xffffffff81000000,
	       "an access of the kernel to memory of the process is a sample");
	tap_ok(!mw_access_reader_next(&reader, &item),
	       "a sample without an address, of the kernel's memory, or of a guest is none");
	tap_eq(reader.counts.no_address, 1, "samples without an address are counted");
	tap_eq(reader.counts.kernel_address, 3, "samples of other memory are counted");
	writer_free(&writer);
}

static void test_losses(void)
{
	struct mw_access_item item;

	open_reader(4096);
	record_begin(&record, PERF_RECORD_LOST, 0);
	put64(&record, 77);
	put64(&record, 12);
	put_trailer(&record, 5, 6, 1000, 3, 77);
	record_end(&record, &writer);
	record_begin(&record, PERF_RECORD_LOST_SAMPLES, 0);
	put64(&record, 30);
	put_trailer(&record, 5, 6, 2000, 3, 77);
	record_end(&record, &writer);
	record_begin(&record, PERF_RECORD_THROTTLE, 0);
	put64(&record, 3000);
	put64(&record, 78);
	put64(&record, 79);
	put_trailer(&record, 5, 6, 3000, 3, 77);
	record_end(&record, &writer);
	record_begin(&record, PERF_RECORD_UNTHROTTLE, 0);
	put64(&record, 4000);
	put64(&record, 78);
	put64(&record, 79);
	put_trailer(&record, 5, 6, 4000, 3, 77);
	record_end(&record, &writer);

	tap_ok(mw_access_reader_next(&reader, &item) && item.kind == MW_ACCESS_LOST &&
		       item.lost == 12 && item.time_ns == 1000 && item.cpu == 3,
	       "a loss of the ring is an item");
	tap_ok(mw_access_reader_next(&reader, &item) && item.kind == MW_ACCESS_LOST &&
		       item.lost == 30 && item.time_ns == 2000,
	       "a loss of the hardware is an item");
	tap_ok(mw_access_reader_next(&reader, &item) && item.kind == MW_ACCESS_THROTTLED &&
		       item.id == 78 && item.time_ns == 3000,
	       "that an event is throttled is an item");
	tap_ok(!mw_access_reader_next(&reader, &item), "the end of throttling is no item");
	tap_ok(reader.counts.lost == 12 && reader.counts.lost_in_hardware == 30 &&
		       reader.counts.throttled == 1 && reader.counts.others == 1,
	       "losses and throttling are counted");
	writer_free(&writer);
}

static void write_task(uint32_t type)
{
	record_begin(&record, type, 0);
	put32(&record, 11);
	put32(&record, 10);
	put32(&record, 13);
	put32(&record, 12);
	put64(&record, 5000);
	put_trailer(&record, 10, 12, 5000, 1, 9);
	record_end(&record, &writer);
}

static void write_map(uint16_t misc, const char *path)
{
	record_begin(&record, PERF_RECORD_MMAP2, misc);
	put32(&record, 10);
	put32(&record, 12);
	put64(&record, 0x400000);
	put64(&record, 0x2000);
	put64(&record, 0x1000);
	put32(&record, 8);
	put32(&record, 1);
	put64(&record, 4242);
	put64(&record, 1);
	put32(&record, PROT_READ | PROT_EXEC);
	put32(&record, MAP_PRIVATE);
	put_string(&record, path);
	put_trailer(&record, 10, 12, 7000, 1, 9);
	record_end(&record, &writer);
}

static void write_comm(uint16_t misc, const char *name)
{
	record_begin(&record, PERF_RECORD_COMM, misc);
	put32(&record, 10);
	put32(&record, 12);
	put_string(&record, name);
	put_trailer(&record, 10, 12, 6000, 1, 9);
	record_end(&record, &writer);
}

static void test_processes(void)
{
	struct mw_access_item item;

	open_reader(4096);
	write_task(PERF_RECORD_FORK);
	write_task(PERF_RECORD_EXIT);
	write_comm(0, "a name of 15 ch");
	write_comm(PERF_RECORD_MISC_COMM_EXEC, "");
	write_map(PERF_RECORD_MISC_USER, "/usr/bin/program");
	write_map(PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID, "//anon");
	tap_ok(mw_access_reader_next(&reader, &item) && item.kind == MW_ACCESS_FORK &&
		       item.pid == 11 && item.ppid == 10 && item.tid == 13 && item.ptid == 12 &&
		       item.time_ns == 5000,
	       "a fork has the new process and its parent");
	tap_ok(mw_access_reader_next(&reader, &item) && item.kind == MW_ACCESS_EXIT &&
		       item.pid == 11 && item.tid == 13,
	       "an exit has the thread");
	tap_ok(mw_access_reader_next(&reader, &item) && item.kind == MW_ACCESS_COMM &&
		       item.pid == 10 && item.tid == 12 && !strcmp(item.name, "a name of 15 ch"),
	       "a new name fills its field");
	tap_ok(mw_access_reader_next(&reader, &item) && item.kind == MW_ACCESS_EXEC && !*item.name,
	       "exec has a name, which may be empty");
	tap_ok(mw_access_reader_next(&reader, &item) && item.kind == MW_ACCESS_MAP &&
		       item.start == 0x400000 && item.length == 0x2000 && item.offset == 0x1000 &&
		       item.major == 8 && item.minor == 1 && item.inode == 4242 &&
		       item.prot == (PROT_READ | PROT_EXEC) && item.time_ns == 7000 &&
		       !strcmp(item.name, "/usr/bin/program"),
	       "a map has addresses, file and path");
	tap_ok(mw_access_reader_next(&reader, &item) && item.kind == MW_ACCESS_MAP && !item.inode &&
		       item.prot == (PROT_READ | PROT_EXEC) && !strcmp(item.name, "//anon"),
	       "a build id is not taken for a file");
	tap_eq(reader.counts.malformed, 0, "no record of processes is malformed");
	writer_free(&writer);
}

/* Each of these is one invalid or unknown record before a sample, which must be found. */
static void test_malformed(void)
{
	static const struct {
		uint32_t type, words;
		bool known;
		const char *what;
	} cases[] = {
		{ PERF_RECORD_SAMPLE, 7, true, "a sample that is too short" },
		{ PERF_RECORD_SAMPLE, 9, true, "a sample that is too long" },
		{ PERF_RECORD_LOST, 5, true, "a loss without a complete trailer" },
		{ PERF_RECORD_LOST_SAMPLES, 4, true, "a loss of the hardware that is cut off" },
		{ PERF_RECORD_THROTTLE, 6, true, "a throttling that is cut off" },
		{ PERF_RECORD_FORK, 6, true, "a fork that is cut off" },
		{ PERF_RECORD_EXIT, 0, true, "an exit without content" },
		{ PERF_RECORD_COMM, 5, true, "a name without room for one" },
		{ PERF_RECORD_COMM, 7, true, "a name that does not end" },
		{ PERF_RECORD_MMAP2, 12, true, "a map that is cut off" },
		{ PERF_RECORD_MMAP2, 15, true, "a path that does not end" },
		{ PERF_RECORD_AUX, 3, false, "a record of another kind" },
		{ 0, 4, false, "a record of kind 0" },
		{ 0xffffffff, 8000, false, "a record of a kind that nobody knows" },
	};
	struct mw_access_item sample = { .address = 1, .time_ns = 99 }, item;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		open_reader(1 << 17);
		record_begin(&record, cases[i].type, 0);
		for (uint32_t n = 0; n < cases[i].words; n++)
			put64(&record, ~0ULL);
		record_end(&record, &writer);
		write_sample(&writer, 2, &sample);
		tap_ok(mw_access_reader_next(&reader, &item) && item.time_ns == 99 &&
			       reader.counts.malformed == cases[i].known &&
			       reader.counts.others == !cases[i].known,
		       "%s is skipped and counted", cases[i].what);
		writer_free(&writer);
	}
}

/* Writes a header and moves the head by @bytes. */
static void write_header(uint16_t size, size_t bytes)
{
	record_begin(&record, PERF_RECORD_SAMPLE, 2);
	memcpy(record.bytes + 6, &size, sizeof(size));
	writer_put(&writer, record.bytes, bytes);
}

static void test_broken(void)
{
	static const struct {
		uint16_t size, bytes;
		const char *what;
	} cases[] = {
		{ 0, 72, "a record of size 0" },
		{ 4, 72, "a record that is smaller than its header" },
		{ 70, 72, "a size that is no multiple of 8" },
		{ 72, 64, "a record that ends behind the head" },
		{ 65528, 72, "the largest size" },
	};
	struct mw_access_item sample = { .address = 1, .time_ns = 99 }, item;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		open_reader(4096);
		write_header(cases[i].size, cases[i].bytes);
		tap_ok(!mw_access_reader_next(&reader, &item) && reader.counts.broken == 1 &&
			       reader.counts.broken_bytes == cases[i].bytes,
		       "%s empties the ring, which is counted", cases[i].what);
		write_sample(&writer, 2, &sample);
		tap_ok(mw_access_reader_next(&reader, &item) && item.time_ns == 99,
		       "%s does not hide what is written later", cases[i].what);
		writer_free(&writer);
	}
	open_reader(4096);
	while (write_sample(&writer, 2, &sample))
		;
	writer.head = 1 << 20;
	tap_ok(!mw_access_reader_next(&reader, &item) && reader.counts.broken == 1 &&
		       writer.tail == writer.head,
	       "a head beyond the ring empties it, even if it is full of samples");
	writer.head = 8;
	tap_ok(!mw_access_reader_next(&reader, &item) && reader.counts.broken == 2,
	       "a head that goes back empties the ring");
	writer.head = 12;
	mw_access_reader_next(&reader, &item);
	writer.head = 84;
	tap_ok(!mw_access_reader_next(&reader, &item) && reader.counts.broken == 4,
	       "a position that is not aligned empties the ring");
	writer_free(&writer);
}

/* Fills the ring with random bytes behind headers of which most are valid. */
static void fill_at_random(struct prng *prng)
{
	uint64_t at = prng_below(prng, 4096) & ~7ULL, end = at + 4096, size;

	writer.head = writer.tail = reader.at = reader.limit = at;
	for (int i = 0; i < 4096; i++)
		writer.data[i] = prng_below(prng, 4) ? 0 : (uint8_t)prng_next(prng);
	for (; at < end; at += size) {
		size = 8 * (1 + prng_below(prng, 20));
		writer.data[at & 4095] = (uint8_t)prng_below(prng, 16);
		memset(writer.data + ((at + 1) & 4095), 0, 3);
		writer.data[(at + 6) & 4095] = (uint8_t)(size + !prng_below(prng, 500));
		writer.data[(at + 7) & 4095] = 0;
	}
	writer.head += prng_below(prng, 4097);
}

static void test_hostile(void)
{
	uint64_t items = 0, names = 0, unread = 0, broken = 0;
	struct prng prng = { SEED };
	struct mw_access_item item;

	tap_note("seed %d", SEED);
	for (int round = 0; round < 3000; round++) {
		open_reader(4096);
		fill_at_random(&prng);
		while (mw_access_reader_next(&reader, &item)) {
			items++;
			names += item.name && strlen(item.name) < MW_ACCESS_RECORD_ROOM;
		}
		unread += reader.at != writer.head || writer.tail != writer.head;
		broken += reader.counts.broken;
		writer_free(&writer);
	}
	tap_eq(unread, 0, "rings of random bytes are read to their ends");
	if (!tap_ok(items > 1000 && names > 1000 && broken > 1000,
		    "some random records are valid, and some cannot be skipped"))
		tap_note("%llu items, %llu names, %llu broken", (unsigned long long)items,
			 (unsigned long long)names, (unsigned long long)broken);
}

static void test_text(void)
{
	struct mw_access_item item = { .kind = MW_ACCESS_SAMPLE,
				       .time_ns = UINT64_MAX,
				       .tid = UINT32_MAX,
				       .address = UINT64_MAX >> 1,
				       .ip = UINT64_MAX };
	static const char head[] = "m 5 7 0x1000 64 site\n";
	char text[1024];
	size_t len = sizeof(head) - 1;
	struct memwatch_ctx *ctx;
	struct memwatch_stale *stale;
	MEMWATCH_OPTS(memwatch_stale_info, info);
	MEMWATCH_OPTS(memwatch_stale_object, object);

	tap_eq(mw_access_text_line(&item, text), 72, "the longest sample fits into a line");
	memcpy(text, head, len);
	item = (struct mw_access_item){
		.kind = MW_ACCESS_SAMPLE, .time_ns = 20, .tid = 7, .address = 0x103f, .ip = 0x77
	};
	len += mw_access_text_line(&item, text + len);
	item.kind = MW_ACCESS_LOST;
	len += mw_access_text_line(&item, text + len);
	item.kind = MW_ACCESS_THROTTLED;
	len += mw_access_text_line(&item, text + len);
	item.kind = MW_ACCESS_FORK;
	tap_eq(mw_access_text_line(&item, text + len), 0, "a fork has no line");
	if (memwatch_ctx_new(NULL, &ctx))
		return;
	tap_eq(replay_text(ctx, NULL, text, len, &stale), 0, "the lines are imported");
	memwatch_stale_get_info(stale, &info);
	memwatch_stale_get_object(stale, 0, &object);
	tap_eq(info.accesses, 1, "the import has the sample, and no more");
	tap_ok(object.accesses == 1 && object.accessed_ns == 20 &&
		       !strcmp(object.last_access, "0x77"),
	       "the sample is charged to the object, with its instruction");
	memwatch_stale_unref(stale);
	memwatch_ctx_unref(ctx);
}

static bool is_prime(uint64_t n)
{
	for (uint64_t i = 2; i * i <= n; i++)
		if (n % i == 0)
			return false;
	return n > 1;
}

static void test_periods(void)
{
	uint64_t state = SEED, sum = 0, min = ~0ULL, max = 0, composite = 0, period;

	for (int i = 0; i < 20000; i++) {
		period = mw_access_period(&state, 100000, 1);
		composite += !is_prime(period);
		sum += period;
		min = period < min ? period : min;
		max = period > max ? period : max;
	}
	tap_eq(composite, 0, "periods are prime");
	tap_ok(sum / 20000 > 99000 && sum / 20000 < 101000, "the mean of the periods is kept");
	tap_ok(min >= 75000 && min < 75100 && max > 124900 && max < 125200,
	       "periods are up to a quarter away from the mean");
	period = mw_access_period(&state, 100000, 16);
	tap_ok(period % 16 == 0 && is_prime(period / 16), "periods of IBS are 16 times a prime");
	tap_ok(mw_access_period(&state, 1, 1) == 1 && mw_access_period(&state, 1, 16) == 16 &&
		       mw_access_period(&state, 15, 1) == 15,
	       "short periods do not vary");
	period = mw_access_period(&state, MW_ACCESS_PERIOD_MAX, 1);
	tap_ok(period > MW_ACCESS_PERIOD_MAX / 2 && is_prime(period), "the longest mean works");
}

int main(void)
{
	tap_start();
	test_samples();
	test_filters();
	test_losses();
	test_processes();
	test_malformed();
	test_broken();
	test_hostile();
	test_text();
	test_periods();
	return tap_done();
}
