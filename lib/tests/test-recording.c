// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Recordings: what is written is read, bit by bit; a file that was cut off at
 * any byte is read up to its last whole block; a bit that flipped anywhere
 * costs at most its block; a full disk loses nothing that was written.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memwatch/recording.h>
#include <memwatch/stream.h>

#include "../../selftests/tap.h"
#include "recording-format.h"
#include "rings.h"

static struct memwatch_ctx *ctx;
static char folder[64], path[80], other[80];

/* All records of a generator, one after another. */
static uint8_t *records;
static size_t records_bytes, records_count;
static struct memwatch_stream_info info;

static void make_records(unsigned int ms)
{
	MEMWATCH_OPTS(memwatch_null_opts, opts, .pmu = 1, .rdt = 1,
		      .duration_ns = ms * 1000000ULL);
	const struct memwatch_record_header *record;
	struct memwatch_stream *stream;

	records_bytes = 0;
	records_count = 0;
	memwatch_stream_open_null(ctx, &opts, &stream);
	while (memwatch_stream_next(stream, &record) == 1) {
		records = realloc(records, records_bytes + record->size);
		memcpy(records + records_bytes, record, record->size);
		records_bytes += record->size;
		records_count++;
	}
	info = *memwatch_stream_info(stream);
	info.hostname = "host\nwith: \\strange name";
	info.backend = "emulated";
	info.version = "9.9";
	memwatch_stream_unref(stream);
}

static int write_file(const char *to, uint32_t block_bytes)
{
	MEMWATCH_OPTS(memwatch_recording_opts, opts, .block_bytes = block_bytes,
		      .flags = MEMWATCH_RECORDING_OVERWRITE);
	struct memwatch_recording *recording;
	int err;

	err = memwatch_recording_create(ctx, to, &info, &opts, &recording);
	for (size_t at = 0; at < records_bytes && !err;) {
		const struct memwatch_record_header *record = (void *)(records + at);

		err = memwatch_recording_write(recording, record);
		at += record->size;
	}
	if (err)
		return err;
	return memwatch_recording_close(recording);
}

/* Reads all; -1 if it is not a prefix of what was written, else how many records. */
static long read_prefix(const char *from, struct memwatch_reader_stats *stats)
{
	const struct memwatch_record_header *record;
	struct memwatch_reader *reader;
	size_t at = 0;
	long count = 0;
	int err;

	if (memwatch_reader_open(ctx, from, &reader))
		return -2;
	while ((err = memwatch_reader_next(reader, &record)) == 1) {
		if (at + record->size > records_bytes ||
		    memcmp(records + at, record, record->size)) {
			count = -1;
			break;
		}
		at += record->size;
		count++;
	}
	if (stats)
		memwatch_reader_stats(reader, stats);
	memwatch_reader_close(reader);
	return err < 0 ? -3 : count;
}

static void test_round_trip(void)
{
	MEMWATCH_OPTS(memwatch_reader_stats, stats);
	struct memwatch_reader *reader;
	const struct memwatch_stream_info *back;
	struct stat status;

	make_records(300);
	tap_ok(!write_file(path, 0), "a recording is written");
	tap_ok(read_prefix(path, &stats) == (long)records_count, "every bit of it is read");
	tap_ok(stats.indexed && !stats.truncated && stats.records == records_count && !stats.damaged,
	       "it has an index that says so");
	stat(path, &status);
	tap_ok((status.st_mode & 0777) == 0600, "it is for its owner only");
	tap_note("%zu records of %.1f bytes in %.2f bytes each", records_count,
		 (double)records_bytes / (double)records_count,
		 (double)status.st_size / (double)records_count);

	memwatch_reader_open(ctx, path, &reader);
	back = memwatch_reader_info(reader);
	tap_ok(!strcmp(back->hostname, info.hostname) && back->period_ns == info.period_ns &&
		       back->start_boottime_ns == info.start_boottime_ns &&
		       back->counter[2].status == MEMWATCH_STATUS_OK && !strcmp(back->version, "9.9"),
	       "its description is what was given");
	memwatch_reader_close(reader);
	tap_ok(write_file("/nonexistent/x", 0) == -ENOENT, "no such folder");
	tap_ok(memwatch_reader_open(ctx, "/dev/null", &reader) == -ENOMSG, "not a recording");
}

static void test_seek(void)
{
	const struct memwatch_record_header *record;
	struct memwatch_reader *reader;
	uint64_t from = ((struct memwatch_record_header *)records)->time_ns;
	bool same = true;

	write_file(path, 4096);
	memwatch_reader_open(ctx, path, &reader);
	for (uint64_t t = from; t < from + 300000000; t += 17000000) {
		memwatch_reader_seek(reader, t);
		same &= memwatch_reader_next(reader, &record) == 1 && record->time_ns >= t &&
			record->time_ns <= t + 1000000;
	}
	memwatch_reader_seek(reader, 0);
	same &= memwatch_reader_next(reader, &record) == 1 && record->time_ns == from;
	memwatch_reader_seek(reader, ~0ULL);
	same &= memwatch_reader_next(reader, &record) == 0;
	tap_ok(same, "seek finds the first record of a time");
	memwatch_reader_close(reader);
}

static uint8_t *load(const char *from, size_t *size)
{
	int fd = open(from, O_RDONLY | O_CLOEXEC);
	uint8_t *bytes;

	*size = (size_t)lseek(fd, 0, SEEK_END);
	bytes = malloc(*size);
	if (pread(fd, bytes, *size, 0) != (ssize_t)*size)
		exit(1);
	close(fd);
	return bytes;
}

static void store(const char *to, const uint8_t *bytes, size_t size)
{
	int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (write(fd, bytes, size) != (ssize_t)size)
		exit(1);
	close(fd);
}

/* Records in blocks that end at or before @end, found by hand. */
static long records_before(const uint8_t *bytes, size_t end)
{
	size_t at = sizeof(struct mw_file_header);
	long count = 0;

	while (at + sizeof(struct mw_block_header) <= end) {
		struct mw_block_header header;

		memcpy(&header, bytes + at, sizeof(header));
		at += sizeof(header) + header.stored_bytes;
		if (at > end || header.magic != MW_BLOCK_MAGIC)
			break;
		if (header.type == MW_BLOCK_RECORDS)
			count += header.records;
	}
	return count;
}

static void test_cut_off(void)
{
	MEMWATCH_OPTS(memwatch_reader_stats, stats);
	size_t size, wrong = 0, tried = 0;
	uint8_t *bytes;

	make_records(15);
	write_file(path, 4096);
	bytes = load(path, &size);
	for (size_t end = 0; end < size; end++) {
		struct mw_block_header first;
		long got, want = records_before(bytes, end);

		memcpy(&first, bytes + 16, sizeof(first));
		store(other, bytes, end);
		got = read_prefix(other, &stats);
		/* without a description it is not a recording yet */
		if (end < 16 + sizeof(first) + first.stored_bytes)
			wrong += got != -2;
		else
			wrong += got != want || !stats.truncated;
		tried++;
	}
	tap_ok(!wrong && tried > 1000, "cut off at each of %zu bytes: all whole blocks are read", tried);
	free(bytes);
}

/* A record that was read was written; nothing crashes; only its block is lost. */
static void test_flipped(void)
{
	size_t size, wrong = 0, largest = 0;
	uint8_t *bytes;

	write_file(path, 4096);
	bytes = load(path, &size);
	for (size_t bit = 0; bit < size * 8; bit += 23) {
		const struct memwatch_record_header *record;
		struct memwatch_reader *reader;
		size_t at = 0, count = 0;

		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		store(other, bytes, size);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (memwatch_reader_open(ctx, other, &reader))
			continue;
		while (memwatch_reader_next(reader, &record) == 1) {
			/* a block may be missing: look for it further on */
			while (at < records_bytes && memcmp(records + at, record, record->size))
				at += ((struct memwatch_record_header *)(records + at))->size;
			if (at >= records_bytes)
				wrong++;
			else
				at += record->size;
			count++;
		}
		if (records_count - count > largest)
			largest = records_count - count;
		memwatch_reader_close(reader);
	}
	tap_ok(!wrong, "flipped bits: what is read was written");
	tap_ok(largest > 0 && largest <= 100, "flipped bits: at most a block is lost (%zu records)",
	       largest);
	free(bytes);
}

static void test_full_disk(void)
{
	MEMWATCH_OPTS(memwatch_recording_opts, opts, .block_bytes = 4096,
		      .flags = MEMWATCH_RECORDING_OVERWRITE);
	MEMWATCH_OPTS(memwatch_recording_stats, stats);
	MEMWATCH_OPTS(memwatch_reader_stats, read);
	struct rlimit limit = { 20000, RLIM_INFINITY };
	struct memwatch_recording *recording;
	long refused = 0;
	size_t at = 0;
	int err = 0;

	/* a limit on the size of files is a disk that is full */
	signal(SIGXFSZ, SIG_IGN);
	make_records(100);
	memwatch_recording_create(ctx, path, &info, &opts, &recording);
	setrlimit(RLIMIT_FSIZE, &limit);
	while (at < records_bytes && !err) {
		err = memwatch_recording_write(recording, (void *)(records + at));
		if (!err)
			at += ((struct memwatch_record_header *)(records + at))->size;
	}
	memwatch_recording_stats(recording, &stats);
	tap_ok(err == -EFBIG && strstr(memwatch_ctx_error(ctx), path), "a full disk: %s",
	       memwatch_ctx_error(ctx));
	tap_ok(read_prefix(path, &read) == (long)(stats.records - stats.pending),
	       "a full disk: what was written is readable");
	for (int i = 0; i < 10; i++)
		refused += memwatch_recording_write(recording, (void *)(records + at)) < 0;
	tap_ok(refused == 10, "a full disk: nothing is taken meanwhile");
	limit.rlim_cur = RLIM_INFINITY;
	setrlimit(RLIMIT_FSIZE, &limit);
	for (err = 0; at < records_bytes && !err; at += ((struct memwatch_record_header *)(records + at))->size)
		err = memwatch_recording_write(recording, (void *)(records + at));
	err = memwatch_recording_close(recording);
	tap_ok(!err && read_prefix(path, &read) == (long)records_count && read.indexed,
	       "when there is room again, not a record is missing");
}

static void test_odd_records(void)
{
	uint64_t random = 5;
	bool same;

	/* unknown types, longer tails, all sizes, all bits */
	records_bytes = 0;
	records_count = 3000;
	records = realloc(records, records_count * 70000);
	for (size_t i = 0; i < records_count; i++) {
		struct memwatch_record_header *record = (void *)(records + records_bytes);
		size_t size = 80 + next_random(&random) % (i % 100 ? 20 : 8000) * 8;

		for (size_t j = 0; j < size; j++)
			((uint8_t *)record)[j] = (uint8_t)next_random(&random);
		record->type = (__u16)(i % 3 ? 1 + next_random(&random) % 12 : next_random(&random));
		record->size = (__u16)size;
		records_bytes += size;
	}
	same = !write_file(path, 0) && read_prefix(path, NULL) == (long)records_count;
	tap_ok(same, "records of any type, size and content are kept as they are");
}

static void test_stream(void)
{
	MEMWATCH_OPTS(memwatch_stream_stats, stats);
	const struct memwatch_record_header *record;
	struct memwatch_stream *stream;
	size_t at = 0;
	bool same = true;

	make_records(50);
	write_file(path, 0);
	memwatch_stream_open_file(ctx, path, &stream);
	while (memwatch_stream_next(stream, &record) == 1) {
		same &= !memcmp(records + at, record, record->size);
		at += record->size;
	}
	memwatch_stream_stats(stream, &stats);
	tap_ok(same && at == records_bytes && stats.delivered == records_count && !stats.truncated,
	       "a recording is a stream");
	memwatch_stream_unref(stream);
}

int main(void)
{
	tap_start();
	snprintf(folder, sizeof(folder), "%s/memwatch-test-XXXXXX", P_tmpdir);
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/a", folder);
	snprintf(other, sizeof(other), "%s/b", folder);
	memwatch_ctx_new(NULL, &ctx);
	tap_ok(mw_crc32c(0, "123456789", 9) == 0xe3069283, "the checksum is CRC-32C");
	test_round_trip();
	test_seek();
	test_cut_off();
	test_flipped();
	test_full_disk();
	test_odd_records();
	test_stream();
	memwatch_ctx_unref(ctx);
	free(records);
	unlink(path);
	unlink(other);
	rmdir(folder);
	return tap_done();
}
