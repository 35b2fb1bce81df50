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
	memwatch_reader_stats(reader, &stats);
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
	tap_ok(good == 60, "random records of all types come back byte for byte (%u of 60)", good);
}

static void test_types(void)
{
	struct batch batch = { 0 };

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
	struct batch batch = { 0 };

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
	struct batch batch = { 0 };

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
	struct batch batch = { 0 };

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
	struct memwatch_record_header record = { .type = MEMWATCH_RECORD_SAMPLE, .size = 72 };
	struct memwatch_reader *reader = NULL;
	struct stat st;

	unlink(path);
	tap_ok(memwatch_recording_create(ctx, path, &no_info, &opts, &recording) == -EINVAL &&
		       access(path, F_OK),
	       "options out of range are refused, and leave no file");
	opts.block_bytes = 0;
	memwatch_recording_close(create_recording(NO_SYNC, 0, 0));
	tap_ok(memwatch_recording_create(ctx, path, &no_info, &opts, &recording) == -EEXIST &&
		       !access(path, F_OK),
	       "an existing file is kept");
	tap_ok(!stat(path, &st) && (st.st_mode & 07777) == 0600, "nobody else may read it");
	chmod(path, 0644);
	recording = create_recording(REPLACE, 0, 0);
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
