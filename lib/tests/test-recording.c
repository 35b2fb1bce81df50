// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Recordings: what is written comes back byte for byte; a file that is cut off
 * anywhere, or damaged anywhere, gives every block that is whole.
 */
#include "recording-kit.h"

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
	memwatch_reader_get_stats(reader, &stats);
	memwatch_reader_close(reader);
	return !err && at == batch->len && stats.records == batch->count && stats.indexed &&
	       !stats.truncated && !stats.damaged;
}

static void test_round_trip(void)
{
	static const uint32_t block_bytes[] = { 4096, 65536, 0, 16 << 20 };
	unsigned int good = 0;

	for (unsigned int i = 0; i < 60; i++) {
		struct batch batch = { 0 };

		random_batch(&batch, i < 4 ? i : 1 + dice(5000));
		good += write_batch(&batch, block_bytes[i % 4]) && same_as(&batch);
		batch_free(&batch);
	}
	tap_eq(good, 60, "random records of all types are read as they were written");
}

static void test_types(void)
{
	struct batch batch = { 0 };

	for (unsigned int i = 0; i < 3000; i++)
		batch_add(&batch, 1000 + i % 300, 16 + 8 * (i % 11), i, i % 3);
	tap_ok(write_batch(&batch, 0), "more types and sizes than a block can hold are written");
	tap_ok(same_as(&batch), "more types and sizes than a block can hold are read");
	batch_free(&batch);

	for (unsigned int i = 0; i < 300; i++)
		random_body(batch_add(&batch, 1000, 65528, i, 0), 0);
	tap_ok(write_batch(&batch, 4096), "incompressible records larger than a block are written");
	tap_ok(same_as(&batch), "incompressible records larger than a block are read");
	batch_free(&batch);
}

/* The records of a generated machine: samples that share a slot, counters, processes, RDT. */
static void test_machine(void)
{
	MEMWATCH_OPTS(memwatch_null_opts, opts, .cpus = 5, .processes = 12, .pmu = 1, .rdt = 1,
		      .samples_per_tick = 6);
	const struct memwatch_record_header *record;
	struct memwatch_stream *stream;
	struct batch batch = { 0 };

	if (memwatch_stream_open_null(ctx, &opts, &stream))
		abort();
	while (memwatch_stream_next(stream, &record) == 1)
		memcpy(batch_add(&batch, record->type, record->size, 0, 0), record, record->size);
	memwatch_stream_unref(stream);
	tap_ok(batch.count > 10000, "the null stream has many records (%u)", batch.count);
	tap_ok(write_batch(&batch, 0), "the records of the null stream are written");
	tap_ok(same_as(&batch), "the records of the null stream are read as they were written");
	batch_free(&batch);
}

static void test_known_types_are_predicted(void)
{
	MEMWATCH_OPTS(memwatch_reader_stats, stats);
	struct memwatch_reader *reader;
	struct batch batch = { 0 };
	uint64_t last = 0;

	for (uint64_t i = 1; i <= 10000; i++) {
		uint64_t now = i * 1000000 + dice(3000);
		struct memwatch_record_sample *s = batch_add(&batch, 1, sizeof(*s), now, 0);
		struct memwatch_record_tick *t;

		s->begin_ns = last;
		s->run_ns = now - s->begin_ns;
		t = batch_add(&batch, 2, sizeof(*t), now, 0);
		t->expected_ns = i * 1000000;
		t->period_ns = 1000000;
		t->produced = i * 2;
		last = now;
	}
	write_batch(&batch, 0);
	memwatch_reader_open(ctx, path, &reader);
	memwatch_reader_get_stats(reader, &stats);
	memwatch_reader_close(reader);
	/* Two records share a time with 12 random bits, which need two planes. */
	tap_ok(same_as(&batch), "records of a CPU with one process are read as they were written");
	tap_ok(stats.file_bytes < batch.count * 2,
	       "a CPU with one process needs less than 2 bytes for a record (%llu for %u)",
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
	is = memwatch_reader_get_info(reader);
	tap_eq(is->schema, 7, "the description keeps the schema");
	tap_eq(is->nr_cpus, UINT32_MAX, "the description keeps the largest number of CPUs");
	tap_eq(is->nr_rmids, 3, "the description keeps the number of RMIDs");
	tap_eq(is->mode, 1, "the description keeps the mode");
	tap_eq(is->period_ns, UINT64_MAX, "the description keeps the largest period");
	tap_eq(is->start_realtime_ns, 1, "the description keeps the start in CLOCK_REALTIME");
	tap_eq(is->start_monotonic_ns, 2, "the description keeps the start in CLOCK_MONOTONIC");
	tap_eq(is->start_boottime_ns, 3, "the description keeps the start in CLOCK_BOOTTIME");
	tap_str_eq(is->backend, "intel-rdt", "the description keeps the backend");
	tap_str_eq(is->backend_reason, info.backend_reason,
		   "the description keeps newlines and backslashes");
	tap_str_eq(is->hostname, "", "the description keeps an empty string");
	tap_str_eq(is->kernel, "6.1.0", "the description keeps the kernel");
	tap_str_eq(is->version, "9.9", "the description keeps the version");
	tap_eq(is->counter[3].status, MEMWATCH_STATUS_OK,
	       "the description keeps the status of a counter");
	tap_str_eq(is->counter[3].reason, "", "a counter without a reason has an empty one");
	tap_str_eq(is->counter[1].reason, info.counter[1].reason,
		   "the description keeps the reason of a counter");
	tap_eq(is->rdt[2].status, MEMWATCH_STATUS_ESTIMATED,
	       "the description keeps the status of an RDT event");
	tap_ok(is->rdt[0].reason, "the reason of an RDT event is never NULL");
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
	tap_eq(end, 6, "a file has a description, blocks and an index");
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
	tap_ok(!wrong, "of a file that is cut off at any of %zu bytes, all whole blocks are read",
	       len);
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
	tap_ok(!wrong, "damage to one of %zu bytes costs at most one block, which is counted", len);
	free(bytes);
}

/* Missing or additional bytes shift all that follows. */
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
	tap_ok(!wrong, "behind missing or additional bytes the next block is found");
	free(shifted);
	free(bytes);
}

/* Headers with right checksums and impossible contents. */
static void test_hostile(void)
{
	static const struct mw_block_header bad[] = {
		{ 1, 2, 1, 100, MW_PLAIN_BYTES_MAX, 1U << 20, MW_RECORD_BYTES_MAX, 0, 1, 1, 0 },
		{ 1, 2, 1, 100, MW_PLAIN_BYTES_MAX + 1, 1, 16, 0, 1, 1, 0 },
		{ 1, 2, 0, 100, 100, UINT32_MAX, UINT32_MAX, 0, 1, 1, 0 },
		{ 1, 2, 0, 100, 100, 5, 80, 0, 1, 1, 0 },
		{ 1, 2, 9, 100, 100, 5, 80, 0, 1, 1, 0 },
		{ 1, 2, 0, 100, 100, 0, 0, 0, 1, 1, 0 },
		{ 1, 2, 0, UINT32_MAX, UINT32_MAX, 5, 80, 0, 1, 1, 0 },
		{ 1, 2, 0, 0, 0, 1, 16, 0, 0, 1, 0 },
	};
	unsigned int wrong = 0;
	uint8_t *bytes, payload[100] = { 1 };
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
		/* The block comes behind the block of records, in place of the index. */
		file_store(bytes, len - MW_BLOCK_HEADER_BYTES - 40 - MW_TRAILER_BYTES);
		fd = open(path, O_WRONLY | O_APPEND);
		if (write(fd, raw, sizeof(raw)) < 0 || write(fd, payload, sizeof(payload)) < 0)
			abort();
		close(fd);
		found = read_numbered(5);
		if (found.open || found.end || found.wrong || found.count != 5)
			wrong++;
	}
	tap_ok(!wrong, "blocks with impossible sizes in their headers are refused");
	free(bytes);
}

/* Seeking relies on the times in the headers, so they must be right. */
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
	tap_eq(found.count, 5, "a block with wrong times in its header is skipped");
	tap_eq(found.stats.damaged, 1, "a block with wrong times in its header is damaged");
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
	const char *with = indexed ? "with" : "without";
	const uint64_t records = 40000;
	unsigned int good = 0;
	struct stat st;

	/* Two records in a block make more blocks than the index has entries. */
	recording = create_recording(REPLACE, 0, 20);
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
	memwatch_reader_get_stats(reader, &stats);
	tap_eq(stats.blocks, records / 2, "all blocks are known %s an index", with);
	tap_eq(stats.records, records, "the number of records is known %s an index", with);
	tap_eq(stats.first_ns, 1000, "the first time is known %s an index", with);
	tap_eq(stats.last_ns, 1000 + (records - 1) * 10, "the last time is known %s an index",
	       with);
	tap_eq(stats.indexed, indexed, "a reader says whether the file is %s an index", with);
	for (unsigned int i = 0; i < 2000; i++) {
		uint64_t number = dice(records), off = dice(10);

		good += seek_gives(reader, 1000 + number * 10 - off, 1000 + number * 10);
	}
	tap_eq(good, 2000, "a seek finds the next record %s an index", with);
	tap_ok(seek_gives(reader, 0, 1000), "a seek before the start finds the first record");
	tap_ok(seek_gives(reader, UINT64_MAX, 0), "a seek to the largest time finds the end");
	tap_ok(seek_gives(reader, stats.last_ns + 1, 0), "a seek behind the end finds the end");
	tap_ok(seek_gives(reader, stats.last_ns, stats.last_ns),
	       "a seek to the last time finds the last record");
	memwatch_reader_close(reader);
}

static void test_late(void)
{
	const struct memwatch_record_header *record;
	struct memwatch_reader *reader;
	struct batch batch = { 0 };

	batch_add(&batch, 2, 48, 500, 0);
	batch_add(&batch, 2, 48, 100, 1);
	batch_add(&batch, 2, 48, 600, 0);
	write_batch(&batch, 0);
	memwatch_reader_open(ctx, path, &reader);
	tap_eq(memwatch_reader_seek(reader, 300), 0,
	       "a seek into a block with a late record works");
	tap_eq(memwatch_reader_next(reader, &record) == 1 ? record->time_ns : 0, 500,
	       "a seek finds a record before a late one");
	tap_eq(memwatch_reader_next(reader, &record) == 1 ? record->time_ns : 0, 600,
	       "a seek skips the late record of the block");
	tap_eq(memwatch_reader_next(reader, &record), 0, "a seek with a late record finds the end");
	memwatch_reader_close(reader);
	batch_free(&batch);
}

static void test_arguments(void)
{
	MEMWATCH_OPTS(memwatch_recording_opts, opts, .block_bytes = 4095);
	struct memwatch_recording *recording = NULL;
	struct memwatch_record_header record = { .type = MEMWATCH_RECORD_SAMPLE, .size = 72 };
	struct memwatch_reader *reader = NULL;
	struct stat st;

	unlink(path);
	tap_eq(memwatch_recording_create(ctx, path, &no_info, &opts, &recording), -EINVAL,
	       "options out of range are refused");
	tap_ok(access(path, F_OK), "options out of range leave no file");
	opts.block_bytes = 0;
	memwatch_recording_close(create_recording(NO_SYNC, 0, 0));
	tap_eq(memwatch_recording_create(ctx, path, &no_info, &opts, &recording), -EEXIST,
	       "an existing file is refused");
	tap_ok(!access(path, F_OK), "an existing file is kept");
	tap_eq(stat(path, &st) ? 0 : st.st_mode & 07777, 0600,
	       "only the owner may read a recording");
	chmod(path, 0644);
	recording = create_recording(REPLACE, 0, 0);
	tap_eq(stat(path, &st) ? 0 : st.st_mode & 07777, 0600,
	       "only the owner may read a recording that replaces a public file");
	tap_eq(memwatch_recording_write(recording, &record), -EINVAL,
	       "a record that is too short is refused");
	record.size = 84;
	tap_eq(memwatch_recording_write(recording, &record), -EINVAL,
	       "a record whose size is no multiple of 8 is refused");
	tap_eq(memwatch_recording_close(recording), 0, "a recording without records can be closed");
	tap_eq(memwatch_recording_close(NULL), 0, "closing no recording does nothing");
	tap_eq(memwatch_reader_open(ctx, directory, &reader), -EISDIR, "a directory is refused");
	file_store((const uint8_t *)"not a recording at all", 22);
	tap_eq(memwatch_reader_open(ctx, path, &reader), -ENOMSG,
	       "a file that is no recording is refused");
	tap_ok(!reader, "a refused file leaves no reader");
	tap_eq(mw_crc32c("123456789", 9), 0xe3069283, "the checksum is crc32c");
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
	tap_eq(memwatch_reader_open(ctx, path, &reader), -EPROTO,
	       "a recording of a newer format is refused with EPROTO");
	free(bytes);
}

int main(void)
{
	tap_start();
	if (!kit_open())
		return EXIT_FAILURE;
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
	kit_close();
	return tap_done();
}
