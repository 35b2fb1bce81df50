// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Recordings: what is written comes back byte for byte; a file that is cut off
 * anywhere, or damaged anywhere, gives every block that is whole; a full disk
 * and a kill cost no block that was written before.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memwatch/memwatch.h>

#include "../../selftests/tap.h"
#include "../src/columns.h"
#include "../src/recording-format.h"

#define NO_SYNC MEMWATCH_RECORDING_NO_SYNC
#define REPLACE (MEMWATCH_RECORDING_NO_SYNC | MEMWATCH_RECORDING_OVERWRITE)

static struct memwatch_ctx *ctx;
static char directory[] = "/dev/shm/memwatch-recording-XXXXXX";
static char path[64];
static uint64_t seed = 88172645463325252ULL;

static uint64_t dice(uint64_t sides)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % sides;
}

static MEMWATCH_OPTS(memwatch_stream_info, no_info);

/* ------------------------------------------------- records to be written */

/* Records one behind the other, as in a block. */
struct batch {
	uint8_t *bytes;
	size_t len, room;
	unsigned int count;
};

static void *batch_add(struct batch *batch, uint16_t type, uint16_t size, uint64_t time_ns,
		       uint16_t cpu)
{
	struct memwatch_record_header *header;

	if (batch->room - batch->len < size) {
		batch->room = batch->room * 2 + 65536;
		batch->bytes = realloc(batch->bytes, batch->room);
		if (!batch->bytes)
			abort();
	}
	header = (void *)(batch->bytes + batch->len);
	memset(header, 0, size);
	header->type = type;
	header->size = size;
	header->time_ns = time_ns;
	header->cpu = cpu;
	batch->len += size;
	batch->count++;
	return header;
}

static const struct memwatch_record_header *record_at(const struct batch *batch, size_t at)
{
	return (const void *)(batch->bytes + at);
}

static void batch_free(struct batch *batch)
{
	free(batch->bytes);
	memset(batch, 0, sizeof(*batch));
}

static uint16_t random_type(void)
{
	static const uint16_t types[] = {1, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 64};

	if (!dice(30))
		return (uint16_t)dice(65536);
	return types[dice(sizeof(types) / sizeof(*types))];
}

static uint16_t random_size(uint16_t type)
{
	static const uint16_t sizes[65] = {
		[1] = 80, [2] = 48, [3] = 80, [4] = 80,	 [5] = 80,  [6] = 80,
		[7] = 32, [8] = 32, [9] = 32, [10] = 64, [64] = 32,
	};
	uint16_t size = type < 65 && sizes[type] ? sizes[type] : 16;

	if (type >= 3 && type <= 6)
		size = sizeof(struct memwatch_record_rmid);
	if (!dice(20) || size == 16)
		size += 8 * dice(6);
	if (!dice(2000))
		size = 65528 - 8 * dice(4000);
	return size;
}

/* Values as they are, values near each other, and values that make no sense. */
static void random_body(struct memwatch_record_header *record, unsigned int kind)
{
	uint8_t *body = (uint8_t *)(record + 1);
	size_t len = record->size - sizeof(*record);

	for (size_t i = 0; i < len; i++) {
		if (kind == 0)
			body[i] = (uint8_t)dice(256);
		else if (kind == 1 && i % 8 < 2)
			body[i] = (uint8_t)dice(16);
		else if (kind == 2 && !dice(40))
			body[i] = 0xff;
	}
}

static void random_batch(struct batch *batch, unsigned int count)
{
	uint64_t time_ns = dice(4) ? dice(1ULL << 40) : UINT64_MAX - dice(1000);

	for (unsigned int i = 0; i < count; i++) {
		uint16_t type = random_type();
		struct memwatch_record_header *record;

		time_ns = dice(50) ? time_ns + dice(1000) : dice(UINT64_MAX);
		if (dice(2))
			record = batch_add(batch, type, random_size(type), time_ns, dice(4));
		else
			record = batch_add(batch, type, random_size(type), time_ns, dice(65536));
		record->flags = dice(10) ? 0 : dice(65536);
		random_body(record, dice(4));
	}
}

/* A sample that says which one it is, at a time that says so too. */
static void numbered(struct memwatch_record_sample *sample, uint64_t number)
{
	memset(sample, 0, sizeof(*sample));
	sample->h.type = MEMWATCH_RECORD_SAMPLE;
	sample->h.size = sizeof(*sample);
	sample->h.cpu = number % 7;
	sample->h.time_ns = 1000 + number * 10;
	sample->rmid = number % 13;
	sample->begin_ns = number;
	sample->counter[0] = number * 0x9e3779b97f4a7c15ULL;
}

/* ----------------------------------------------------- writing and reading */

static struct memwatch_recording *create(uint32_t flags, uint32_t block_bytes, uint64_t block_ns)
{
	MEMWATCH_OPTS(memwatch_recording_opts, opts, .flags = flags, .block_bytes = block_bytes,
		      .block_ns = block_ns);
	struct memwatch_recording *recording = NULL;

	if (memwatch_recording_create(ctx, path, &no_info, &opts, &recording)) {
		tap_note("create: %s", memwatch_ctx_error(ctx));
		exit(EXIT_FAILURE);
	}
	return recording;
}

static bool write_batch(const struct batch *batch, uint32_t block_bytes)
{
	struct memwatch_recording *recording = create(REPLACE, block_bytes, UINT64_MAX);
	bool good = true;

	for (size_t at = 0; at < batch->len; at += record_at(batch, at)->size)
		good &= !memwatch_recording_write(recording, record_at(batch, at));
	return !memwatch_recording_close(recording) && good;
}

/* Numbered records in blocks of @each. */
static void write_numbered(unsigned int blocks, unsigned int each)
{
	struct memwatch_recording *recording = create(REPLACE, 0, UINT64_MAX);
	struct memwatch_record_sample sample;

	for (uint64_t i = 0; i < (uint64_t)blocks * each; i++) {
		numbered(&sample, i);
		memwatch_recording_write(recording, &sample.h);
		if (i % each == each - 1)
			memwatch_recording_flush(recording, 0);
	}
	memwatch_recording_close(recording);
}

struct found {
	int open, end;
	uint64_t count, blocks_lost, wrong;
	struct memwatch_reader_stats stats;
};

/* Reads numbered records; @each are in a block, and only whole blocks may be missing. */
static struct found read_numbered(unsigned int each)
{
	struct found found = {.stats.sz = sizeof(found.stats)};
	const struct memwatch_record_header *record;
	struct memwatch_record_sample sample;
	struct memwatch_reader *reader;
	uint64_t number = 0;

	found.open = memwatch_reader_open(ctx, path, &reader);
	if (found.open)
		return found;
	while ((found.end = memwatch_reader_next(reader, &record)) == 1) {
		uint64_t is = (record->time_ns - 1000) / 10;

		if (is != number) {
			found.wrong += is < number || (is - number) % each;
			found.blocks_lost += (is - number) / each;
			number = is;
		}
		numbered(&sample, number++);
		found.wrong += record->size != sizeof(sample) ||
			       memcmp(record, &sample, sizeof(sample));
		found.count++;
	}
	memwatch_reader_stats(reader, &found.stats);
	memwatch_reader_close(reader);
	return found;
}

static size_t file_load(uint8_t **bytes)
{
	int fd = open(path, O_RDONLY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		abort();
	*bytes = malloc((size_t)st.st_size);
	if (!*bytes || read(fd, *bytes, (size_t)st.st_size) != st.st_size)
		abort();
	close(fd);
	return (size_t)st.st_size;
}

static void file_store(const uint8_t *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		abort();
	close(fd);
}

/* ------------------------------------------------------------------ tests */

static bool same_as(const struct batch *batch)
{
	MEMWATCH_OPTS(memwatch_reader_stats, stats);
	const struct memwatch_record_header *record;
	struct memwatch_reader *reader;
	size_t at = 0;
	int err;

	if (memwatch_reader_open(ctx, path, &reader))
		return false;
	while ((err = memwatch_reader_next(reader, &record)) == 1) {
		if (at == batch->len || record->size != record_at(batch, at)->size ||
		    memcmp(record, batch->bytes + at, record->size) || (uintptr_t)record % 8)
			break;
		at += record->size;
	}
	memwatch_reader_stats(reader, &stats);
	memwatch_reader_close(reader);
	return !err && at == batch->len && stats.records == batch->count && stats.indexed &&
	       !stats.truncated && !stats.damaged;
}

static void test_round_trip(void)
{
	static const uint32_t block_bytes[] = {4096, 65536, 0, 16 << 20};
	unsigned int good = 0;

	for (unsigned int i = 0; i < 60; i++) {
		struct batch batch = {0};

		random_batch(&batch, i < 4 ? i : 1 + dice(5000));
		good += write_batch(&batch, block_bytes[i % 4]) && same_as(&batch);
		batch_free(&batch);
	}
	tap_ok(good == 60, "random records of all types come back byte for byte (%u of 60)", good);
}

static void test_types(void)
{
	struct batch batch = {0};

	for (unsigned int i = 0; i < 3000; i++)
		batch_add(&batch, 1000 + i % 300, 16 + 8 * (i % 11), i, i % 3);
	tap_ok(write_batch(&batch, 0) && same_as(&batch),
	       "more types and sizes than a block can hold");
	batch_free(&batch);

	for (unsigned int i = 0; i < 300; i++)
		random_body(batch_add(&batch, 1000, 65528, i, 0), 0);
	tap_ok(write_batch(&batch, 4096) && same_as(&batch),
	       "records larger than a block, incompressible");
	batch_free(&batch);
}

/* As it really is: samples that share a slot, counters, lives, RDT. */
static void test_machine(void)
{
	MEMWATCH_OPTS(memwatch_null_opts, opts, .cpus = 5, .processes = 12, .pmu = 1, .rdt = 1,
		      .samples_per_tick = 6);
	const struct memwatch_record_header *record;
	struct memwatch_stream *stream;
	struct batch batch = {0};

	if (memwatch_stream_open_null(ctx, &opts, &stream))
		abort();
	while (memwatch_stream_next(stream, &record) == 1)
		memcpy(batch_add(&batch, record->type, record->size, 0, 0), record, record->size);
	memwatch_stream_unref(stream);
	tap_ok(batch.count > 10000 && write_batch(&batch, 0) && same_as(&batch),
	       "the null stream comes back byte for byte (%u records)", batch.count);
	batch_free(&batch);
}

static void test_known_types_are_predicted(void)
{
	MEMWATCH_OPTS(memwatch_reader_stats, stats);
	struct memwatch_reader *reader;
	struct batch batch = {0};

	for (uint64_t i = 1; i <= 10000; i++) {
		uint64_t now = i * 1000000 + dice(3000);
		struct memwatch_record_sample *s = batch_add(&batch, 1, sizeof(*s), now, 0);
		struct memwatch_record_tick *t;

		s->begin_ns = i == 1 ? 0 : record_at(&batch, batch.len - 80 - 48)->time_ns;
		s->run_ns = now - s->begin_ns;
		t = batch_add(&batch, 2, sizeof(*t), now, 0);
		t->expected_ns = i * 1000000;
		t->period_ns = 1000000;
		t->produced = i * 2;
	}
	write_batch(&batch, 0);
	memwatch_reader_open(ctx, path, &reader);
	memwatch_reader_stats(reader, &stats);
	memwatch_reader_close(reader);
	/* All that is new is a time of 12 bits for two records, in two byte planes. */
	tap_ok(same_as(&batch) && stats.file_bytes < batch.count * 2,
	       "a CPU with one process costs less than 2 bytes a record (%llu for %u)",
	       (unsigned long long)stats.file_bytes, batch.count);
	batch_free(&batch);
}

static void test_info(void)
{
	MEMWATCH_OPTS(memwatch_stream_info, info, .schema = 7, .nr_cpus = UINT32_MAX, .nr_rmids = 3,
		      .mode = 1, .backend = "intel-rdt", .backend_reason = "a\\nb\nc\\\\=d\n",
		      .hostname = "", .kernel = "6.1.0", .version = "9.9", .period_ns = UINT64_MAX,
		      .start_realtime_ns = 1, .start_monotonic_ns = 2, .start_boottime_ns = 3);
	MEMWATCH_OPTS(memwatch_recording_opts, opts, .flags = REPLACE);
	const struct memwatch_stream_info *is;
	struct memwatch_recording *recording;
	struct memwatch_reader *reader;

	info.counter[3].status = MEMWATCH_STATUS_OK;
	info.counter[1].reason = "no PMU in this machine: x=1\n";
	info.rdt[2].status = MEMWATCH_STATUS_ESTIMATED;
	info.rdt[2].reason = "";
	if (memwatch_recording_create(ctx, path, &info, &opts, &recording) ||
	    memwatch_recording_close(recording) || memwatch_reader_open(ctx, path, &reader)) {
		tap_ok(false, "description: %s", memwatch_ctx_error(ctx));
		return;
	}
	is = memwatch_reader_info(reader);
	tap_ok(is->schema == 7 && is->nr_cpus == UINT32_MAX && is->nr_rmids == 3 && is->mode == 1 &&
		       is->period_ns == UINT64_MAX && is->start_realtime_ns == 1 &&
		       is->start_monotonic_ns == 2 && is->start_boottime_ns == 3,
	       "description: numbers");
	tap_ok(!strcmp(is->backend, "intel-rdt") &&
		       !strcmp(is->backend_reason, info.backend_reason) &&
		       !strcmp(is->hostname, "") && !strcmp(is->kernel, "6.1.0") &&
		       !strcmp(is->version, "9.9"),
	       "description: strings, with newlines and backslashes");
	tap_ok(is->counter[3].status == MEMWATCH_STATUS_OK && !strcmp(is->counter[3].reason, "") &&
		       !strcmp(is->counter[1].reason, info.counter[1].reason) &&
		       is->rdt[2].status == MEMWATCH_STATUS_ESTIMATED && is->rdt[0].reason,
	       "description: availability, and no string is NULL");
	memwatch_reader_close(reader);
}

static void test_truncated(void)
{
	unsigned int wrong = 0, ends[8], end = 0;
	uint8_t *bytes;
	size_t len;

	write_numbered(4, 5);
	len = file_load(&bytes);
	for (size_t at = 0; at < len;) {
		struct mw_block_header header;

		if (mw_block_header_unpack(&header, bytes + at) != MW_HEADER_OK)
			break;
		at += MW_BLOCK_HEADER_BYTES + header.stored_bytes;
		ends[end++] = (unsigned int)at;
	}
	tap_ok(end == 6, "a file is description, blocks, index");
	for (size_t cut = 0; cut <= len; cut++) {
		struct found found;
		unsigned int whole = 0;
		bool right;

		file_store(bytes, cut);
		found = read_numbered(5);
		while (whole < 4 && ends[whole + 1] <= cut)
			whole++;
		if (cut < MW_MAGIC_BYTES)
			right = found.open == -ENOMSG;
		else if (cut < ends[0])
			right = found.open == -EBADMSG;
		else
			right = !found.open && !found.end && found.count == whole * 5 &&
				!found.wrong && !found.stats.damaged &&
				found.stats.records == found.count && found.stats.blocks == whole &&
				found.stats.truncated == (cut < len) &&
				found.stats.indexed == (cut == len);
		if (!right && !wrong++)
			tap_note("cut at %zu of %zu: open %d, %llu records, %llu damaged", cut, len,
				 found.open, (unsigned long long)found.count,
				 (unsigned long long)found.stats.damaged);
	}
	tap_ok(!wrong, "cut off at any of %zu bytes, the whole blocks are read", len);
	free(bytes);
}

static void test_flipped(void)
{
	unsigned int wrong = 0;
	struct mw_block_header header;
	size_t len, info_end;
	uint8_t *bytes;

	write_numbered(4, 5);
	len = file_load(&bytes);
	mw_block_header_unpack(&header, bytes);
	info_end = MW_BLOCK_HEADER_BYTES + header.stored_bytes;
	for (size_t i = 0; i < len * 2; i++) {
		uint8_t mask = i % 2 ? 0xff : (uint8_t)(1U << dice(8));
		struct found found;
		bool right;

		bytes[i / 2] ^= mask;
		file_store(bytes, len);
		found = read_numbered(5);
		bytes[i / 2] ^= mask;
		if (i / 2 < info_end)
			right = found.open == -ENOMSG || found.open == -EBADMSG;
		else
			right = !found.open && !found.end && !found.wrong && found.count >= 15 &&
				found.count % 5 == 0 &&
				(found.count == 20 || found.stats.damaged == 1);
		if (!right && !wrong++)
			tap_note("byte %zu of %zu ^ %#x: open %d, %llu records, %llu wrong, %llu "
				 "damaged",
				 i / 2, len, mask, found.open, (unsigned long long)found.count,
				 (unsigned long long)found.wrong,
				 (unsigned long long)found.stats.damaged);
	}
	tap_ok(!wrong, "one of %zu bytes damaged costs at most one block, which is counted", len);
	free(bytes);
}

/* Bytes that are missing, or too many, shift everything behind them. */
static void test_shifted(void)
{
	unsigned int wrong = 0;
	size_t len;
	uint8_t *bytes, *shifted;

	write_numbered(6, 5);
	len = file_load(&bytes);
	shifted = malloc(len + 64);
	if (!shifted)
		abort();
	for (unsigned int i = 0; i < 400; i++) {
		size_t at = 700 + dice(len - 1000), by = 1 + dice(60);
		struct found found;

		memcpy(shifted, bytes, at);
		if (i % 2) {
			memcpy(shifted + at, bytes + at + by, len - at - by);
			file_store(shifted, len - by);
		} else {
			memset(shifted + at, 'x', by);
			memcpy(shifted + at + by, bytes + at, len - at);
			file_store(shifted, len + by);
		}
		found = read_numbered(5);
		if ((found.open || found.end || found.wrong || found.count < 20 ||
		     (found.count < 30 && !found.stats.damaged)) &&
		    !wrong++)
			tap_note("%zu bytes at %zu: open %d, %llu records, %llu damaged", by, at,
				 found.open, (unsigned long long)found.count,
				 (unsigned long long)found.stats.damaged);
	}
	tap_ok(!wrong, "after missing or additional bytes the next block is found");
	free(shifted);
	free(bytes);
}

/* Right checksums, wrong contents. */
static void test_hostile(void)
{
	static const struct mw_block_header bad[] = {
		{1, 2, 1, 100, MW_PLAIN_BYTES_MAX, 1U << 20, MW_RECORD_BYTES_MAX, 0, 1, 1, 0},
		{1, 2, 1, 100, MW_PLAIN_BYTES_MAX + 1, 1, 16, 0, 1, 1, 0},
		{1, 2, 0, 100, 100, UINT32_MAX, UINT32_MAX, 0, 1, 1, 0},
		{1, 2, 0, 100, 100, 5, 80, 0, 1, 1, 0},
		{1, 2, 9, 100, 100, 5, 80, 0, 1, 1, 0},
		{1, 2, 0, 100, 100, 0, 0, 0, 1, 1, 0},
		{1, 2, 0, UINT32_MAX, UINT32_MAX, 5, 80, 0, 1, 1, 0},
		{1, 2, 0, 0, 0, 1, 16, 0, 0, 1, 0},
	};
	unsigned int wrong = 0;
	uint8_t *bytes, payload[100] = {1};
	size_t len;

	write_numbered(1, 5);
	len = file_load(&bytes);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct mw_block_header header = bad[i];
		uint8_t raw[MW_BLOCK_HEADER_BYTES];
		struct found found;
		int fd;

		header.stored_crc = mw_crc32c(payload, header.stored_bytes ? sizeof(payload) : 0);
		mw_block_header_pack(raw, &header);
		/* behind the block of records, in place of the index */
		file_store(bytes, len - MW_BLOCK_HEADER_BYTES - 40 - MW_TRAILER_BYTES);
		fd = open(path, O_WRONLY | O_APPEND);
		if (write(fd, raw, sizeof(raw)) < 0 || write(fd, payload, sizeof(payload)) < 0)
			abort();
		close(fd);
		found = read_numbered(5);
		if (found.open || found.end || found.wrong || found.count != 5)
			wrong++;
	}
	tap_ok(!wrong, "blocks that lie about their size are refused");
	free(bytes);
}

/* Seeking believes the times of the header, so they have to be true. */
static void test_times(void)
{
	struct mw_block_header info, header;
	struct found found;
	uint8_t *bytes;
	size_t len, at;

	write_numbered(2, 5);
	len = file_load(&bytes);
	mw_block_header_unpack(&info, bytes);
	at = MW_BLOCK_HEADER_BYTES + info.stored_bytes;
	mw_block_header_unpack(&header, bytes + at);
	header.last_ns++;
	mw_block_header_pack(bytes + at, &header);
	file_store(bytes, len);
	found = read_numbered(5);
	tap_ok(found.count == 5 && found.stats.damaged == 1,
	       "a block that lies about its times is refused");
	free(bytes);
}

static bool seek_gives(struct memwatch_reader *reader, uint64_t time_ns, uint64_t expected)
{
	const struct memwatch_record_header *record;
	int err = memwatch_reader_seek(reader, time_ns);

	if (!err)
		err = memwatch_reader_next(reader, &record);
	return expected ? err == 1 && record->time_ns == expected : !err;
}

static void test_seek(bool indexed)
{
	struct memwatch_record_sample sample;
	struct memwatch_recording *recording;
	struct memwatch_reader *reader;
	MEMWATCH_OPTS(memwatch_reader_stats, stats);
	const uint64_t records = 40000;
	unsigned int good = 0;
	struct stat st;

	/* a block for every second record: more blocks than the index has room for */
	recording = create(REPLACE, 0, 20);
	for (uint64_t i = 0; i < records; i++) {
		numbered(&sample, i);
		memwatch_recording_write(recording, &sample.h);
	}
	memwatch_recording_close(recording);
	if (!indexed && (stat(path, &st) || truncate(path, st.st_size - 1)))
		abort();
	if (memwatch_reader_open(ctx, path, &reader)) {
		tap_ok(false, "seek: %s", memwatch_ctx_error(ctx));
		return;
	}
	memwatch_reader_stats(reader, &stats);
	tap_ok(stats.blocks == records / 2 && stats.records == records && stats.first_ns == 1000 &&
		       stats.last_ns == 1000 + (records - 1) * 10 && stats.indexed == indexed,
	       "%s index: %llu blocks are known", indexed ? "with" : "without",
	       (unsigned long long)stats.blocks);
	for (unsigned int i = 0; i < 2000; i++) {
		uint64_t number = dice(records), off = dice(10);

		good += seek_gives(reader, 1000 + number * 10 - off, 1000 + number * 10);
	}
	tap_ok(good == 2000, "seek to a time");
	tap_ok(seek_gives(reader, 0, 1000) && seek_gives(reader, UINT64_MAX, 0) &&
		       seek_gives(reader, stats.last_ns + 1, 0) &&
		       seek_gives(reader, stats.last_ns, stats.last_ns),
	       "seek before the start and behind the end");
	memwatch_reader_close(reader);
}

static void test_late(void)
{
	const struct memwatch_record_header *record;
	struct memwatch_reader *reader;
	struct batch batch = {0};

	batch_add(&batch, 2, 48, 500, 0);
	batch_add(&batch, 2, 48, 100, 1);
	batch_add(&batch, 2, 48, 600, 0);
	write_batch(&batch, 0);
	memwatch_reader_open(ctx, path, &reader);
	tap_ok(!memwatch_reader_seek(reader, 300) && memwatch_reader_next(reader, &record) == 1 &&
		       record->time_ns == 500 && memwatch_reader_next(reader, &record) == 1 &&
		       record->time_ns == 600 && !memwatch_reader_next(reader, &record),
	       "seek skips the earlier records of the block");
	memwatch_reader_close(reader);
	batch_free(&batch);
}

static void test_arguments(void)
{
	MEMWATCH_OPTS(memwatch_recording_opts, opts, .block_bytes = 4095);
	struct memwatch_recording *recording = NULL;
	struct memwatch_record_header record = {.type = MEMWATCH_RECORD_SAMPLE, .size = 72};
	struct memwatch_reader *reader = NULL;
	struct stat st;

	unlink(path);
	tap_ok(memwatch_recording_create(ctx, path, &no_info, &opts, &recording) == -EINVAL &&
		       access(path, F_OK),
	       "options out of range are refused, and leave no file");
	opts.block_bytes = 0;
	memwatch_recording_close(create(NO_SYNC, 0, 0));
	tap_ok(memwatch_recording_create(ctx, path, &no_info, &opts, &recording) == -EEXIST &&
		       !access(path, F_OK),
	       "an existing file is kept");
	tap_ok(!stat(path, &st) && (st.st_mode & 07777) == 0600, "nobody else may read it");
	chmod(path, 0644);
	recording = create(REPLACE, 0, 0);
	tap_ok(!stat(path, &st) && (st.st_mode & 07777) == 0600,
	       "also if it replaces one that everybody could read");
	tap_ok(memwatch_recording_write(recording, &record) == -EINVAL,
	       "a short record is refused");
	record.size = 84;
	tap_ok(memwatch_recording_write(recording, &record) == -EINVAL, "an odd record is refused");
	tap_ok(!memwatch_recording_close(recording) && !memwatch_recording_close(NULL), "close");
	tap_ok(memwatch_reader_open(ctx, directory, &reader) == -EISDIR, "a directory is refused");
	file_store((const uint8_t *)"not a recording at all", 22);
	tap_ok(memwatch_reader_open(ctx, path, &reader) == -ENOMSG && !reader,
	       "another file is refused");
	tap_ok(mw_crc32c("123456789", 9) == 0xe3069283, "checksum is crc32c");
}

static void test_newer(void)
{
	struct memwatch_reader *reader;
	uint8_t *bytes;
	size_t len;

	write_numbered(1, 1);
	len = file_load(&bytes);
	mw_put16(bytes + 8, MW_FORMAT_VERSION + 1);
	mw_put32(bytes + 60, mw_crc32c(bytes, 60));
	file_store(bytes, len);
	tap_ok(memwatch_reader_open(ctx, path, &reader) == -EPROTO, "a newer format is named");
	free(bytes);
}

/* ------------------------------------------------------------- a full disk */

/*
 * Writes until it fails, twice, makes room with @more and goes on. Everything
 * that was taken has to be there in the end.
 */
static bool survives_full(int expected, void (*more)(void))
{
	struct memwatch_recording *recording = create(REPLACE, 4096, UINT64_MAX);
	MEMWATCH_OPTS(memwatch_recording_stats, stats);
	struct memwatch_record_sample sample;
	uint64_t number = 0, taken;
	struct found found;
	struct stat st;
	int err = 0;

	while (!err && number < 1000000) {
		numbered(&sample, number);
		err = memwatch_recording_write(recording, &sample.h);
		number += !err;
	}
	if (err != expected || memwatch_recording_write(recording, &sample.h) != expected ||
	    memwatch_recording_flush(recording, 0) != expected) {
		tap_note("%s instead of %s", strerror(-err), strerror(-expected));
		return false;
	}
	memwatch_recording_stats(recording, &stats);
	taken = stats.records - stats.pending;
	found = read_numbered(1);
	if (stat(path, &st) || (uint64_t)st.st_size != stats.file_bytes ||
	    stats.records != number || found.count != taken || found.wrong || found.blocks_lost ||
	    found.stats.damaged) {
		tap_note("while full: %llu records, %llu bytes, file has %lld",
			 (unsigned long long)found.count, (unsigned long long)stats.file_bytes,
			 (long long)st.st_size);
		return false;
	}
	more();
	for (unsigned int i = 0; i < 500 && !(err = memwatch_recording_write(recording, &sample.h));
	     i++)
		numbered(&sample, ++number);
	err = memwatch_recording_close(recording);
	found = read_numbered(1);
	return !err && found.count == number && !found.wrong && !found.blocks_lost &&
	       found.stats.indexed && !found.stats.damaged;
}

static void limit_more(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_FSIZE, &limit);
}

static bool in_child(bool (*test)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		fflush(stdout);
		_exit(test() ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       !WEXITSTATUS(status);
}

/* A block that could not be written goes on collecting. */
static bool flush_fails(void)
{
	struct memwatch_recording *recording = create(REPLACE, 0, UINT64_MAX);
	MEMWATCH_OPTS(memwatch_recording_stats, stats);
	struct memwatch_record_sample sample;
	struct rlimit limit;
	struct found found;
	bool good = true;

	memwatch_recording_stats(recording, &stats);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = stats.file_bytes + 100; /* a header, and not much more */
	setrlimit(RLIMIT_FSIZE, &limit);
	for (uint64_t i = 0; i < 200; i++) {
		numbered(&sample, i);
		good &= !memwatch_recording_write(recording, &sample.h);
		if (i == 100)
			good &= memwatch_recording_flush(recording, 1) == -EFBIG;
	}
	limit_more();
	good &= !memwatch_recording_close(recording);
	found = read_numbered(1);
	return good && found.count == 200 && !found.wrong && !found.blocks_lost;
}

static bool full_by_limit(void)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	/* in the middle of a block, wherever that is */
	limit.rlim_cur = 33333;
	setrlimit(RLIMIT_FSIZE, &limit);
	return survives_full(-EFBIG, limit_more);
}

static void mount_more(void)
{
	mount("none", directory, NULL, MS_REMOUNT, "size=8m");
}

static bool full_by_mount(void)
{
	return survives_full(-ENOSPC, mount_more);
}

/* There is room for the index, but not for the records before it. */
static bool close_fails(void)
{
	struct memwatch_recording *recording = create(REPLACE, 0, UINT64_MAX);
	MEMWATCH_OPTS(memwatch_recording_stats, stats);
	struct memwatch_record_sample sample;
	struct rlimit limit;
	struct found found;

	for (uint64_t i = 0; i < 3000; i++) {
		numbered(&sample, i);
		if (memwatch_recording_write(recording, &sample.h) ||
		    (i == 99 && memwatch_recording_flush(recording, 0)))
			return false;
	}
	memwatch_recording_stats(recording, &stats);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = stats.file_bytes + 1000;
	setrlimit(RLIMIT_FSIZE, &limit);
	if (memwatch_recording_close(recording) != -EFBIG)
		return false;
	found = read_numbered(1);
	return found.count == 100 && !found.wrong && found.stats.truncated && !found.stats.damaged;
}

static void test_full(void)
{
	tap_ok(in_child(full_by_limit), "file size limit: cut back to whole blocks, retry works");
	tap_ok(in_child(flush_fails), "after a flush that failed, nothing is lost");
	tap_ok(in_child(close_fails), "close on a full disk says so, and so does the file");
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", directory, "tmpfs", 0, "size=40k")) {
		tap_skip("full disk: cut back to whole blocks, retry works", "cannot mount tmpfs");
		return;
	}
	tap_ok(in_child(full_by_mount), "full disk: cut back to whole blocks, retry works");
	umount(directory);
}

/* ------------------------------------------------------------------- kills */

/* @written: records that are surely in the file, told by the writer */
static void write_for_ever(uint64_t *written)
{
	struct memwatch_recording *recording = create(REPLACE, 4096 + 4096 * (uint32_t)dice(20), 0);
	MEMWATCH_OPTS(memwatch_recording_stats, stats);
	struct memwatch_record_sample sample;

	for (uint64_t i = 0;; i++) {
		numbered(&sample, i);
		if (memwatch_recording_write(recording, &sample.h))
			_exit(EXIT_FAILURE);
		memwatch_recording_stats(recording, &stats);
		__atomic_store_n(written, stats.records - stats.pending, __ATOMIC_RELEASE);
	}
}

static void test_killed(void)
{
	uint64_t *written = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
				 0);
	unsigned int wrong = 0, useful = 0;

	if (written == MAP_FAILED)
		abort();
	for (unsigned int i = 0; i < 60; i++) {
		struct found found;
		pid_t pid;

		unlink(path);
		dice(2);
		*written = 0;
		pid = fork();
		if (!pid)
			write_for_ever(written);
		usleep((useconds_t)dice(i % 2 ? 3000 : 30000));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		if (access(path, F_OK))
			continue;
		found = read_numbered(1);
		if (found.open && !*written)
			continue; /* killed before it had begun */
		useful += found.count > 0;
		if ((found.open || found.end || found.wrong || found.blocks_lost ||
		     found.stats.damaged || !found.stats.truncated || found.count < *written ||
		     found.count != found.stats.records) &&
		    !wrong++)
			tap_note("open %d, %llu records of %llu, %llu damaged", found.open,
				 (unsigned long long)found.count, (unsigned long long)*written,
				 (unsigned long long)found.stats.damaged);
	}
	tap_ok(!wrong && useful > 20,
	       "killed at any moment: all written blocks are read (%u times)", useful);
	munmap(written, 4096);
}

/* ------------------------------------------------------------------ replay */

static void test_replay(void)
{
	MEMWATCH_OPTS(memwatch_stream_stats, stats);
	MEMWATCH_OPTS(memwatch_stream_cpu_stats, cpu);
	const struct memwatch_record_header *record;
	struct memwatch_record_lost *lost;
	struct memwatch_stream *stream;
	struct batch batch = {0};
	struct stat st;
	size_t at = 0;
	int err;

	batch_add(&batch, MEMWATCH_RECORD_TICK, 48, 100, 5);
	batch_add(&batch, MEMWATCH_RECORD_TICK, 48, 200, 65535);
	lost = batch_add(&batch, MEMWATCH_RECORD_LOST, 32, 250, 5);
	lost->count = 17;
	lost->h.flags = MEMWATCH_RECORD_F_FORCED;
	batch_add(&batch, 999, 24, 300, 5);
	((struct memwatch_record_header *)batch_add(&batch, 999, 24, 260, 5))->flags =
		MEMWATCH_RECORD_F_LATE;
	write_batch(&batch, 0);
	if (memwatch_stream_open_file(ctx, path, &stream)) {
		tap_ok(false, "replay: %s", memwatch_ctx_error(ctx));
		return;
	}
	while (memwatch_stream_poll(stream, -1) == 1 &&
	       (err = memwatch_stream_next(stream, &record)) == 1 && at < batch.len &&
	       !memcmp(record, batch.bytes + at, record->size))
		at += record->size;
	tap_ok(!err && at == batch.len, "replay gives what was recorded, flags included");
	memwatch_stream_stats(stream, &stats);
	tap_ok(stats.delivered == 4 && stats.produced == 4 && stats.lost == 17 && stats.late == 1 &&
		       stats.forced == 0 && stats.watermark_ns == 300 && stats.rings == 2 &&
		       !stats.truncated && !stats.malformed && stats.memory_bytes,
	       "replay counts");
	tap_ok(memwatch_stream_cpu_stats(stream, 0, &cpu) == 1 && cpu.cpu == 5 && cpu.lost == 17 &&
		       cpu.delivered == 3 && cpu.newest_ns == 300 &&
		       memwatch_stream_cpu_stats(stream, 1, &cpu) == 1 && cpu.cpu == 65535 &&
		       !memwatch_stream_cpu_stats(stream, 2, &cpu),
	       "replay counts by CPU");
	memwatch_stream_unref(stream);

	if (stat(path, &st) || truncate(path, st.st_size - 5) ||
	    memwatch_stream_open_file(ctx, path, &stream))
		abort();
	memwatch_stream_stats(stream, &stats);
	tap_ok(stats.truncated && memwatch_stream_next(stream, &record) == 1 &&
		       !memwatch_stream_stop(stream) && !memwatch_stream_next(stream, &record),
	       "replay of a file cut off says so; it ends when stopped");
	memwatch_stream_unref(stream);
	batch_free(&batch);
}

int main(void)
{
	tap_start();
	/* Memory, if there is such a place: some thousand files are written. */
	if (access("/dev/shm", W_OK))
		strcpy(directory, "/tmp/memwatch-recording-XXXXXX");
	if (memwatch_ctx_new(NULL, &ctx) || !mkdtemp(directory))
		return EXIT_FAILURE;
	snprintf(path, sizeof(path), "%s/recording", directory);
	test_round_trip();
	test_types();
	test_machine();
	test_known_types_are_predicted();
	test_info();
	test_truncated();
	test_flipped();
	test_shifted();
	test_hostile();
	test_times();
	test_seek(true);
	test_seek(false);
	test_late();
	test_arguments();
	test_newer();
	test_killed();
	test_replay();
	test_full();
	unlink(path);
	rmdir(directory);
	memwatch_ctx_unref(ctx);
	return tap_done();
}
