// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What a hostile recording costs to read. Bytes are counted, not time: those that the reader
 * takes from the file, as the kernel counts them, and those of the records that it delivers.
 */
#include "recording-kit.h"

#include "recording/block.h"

#define MIB (1ULL << 20)

/* Bytes that this process has read from files. */
static uint64_t bytes_read(void)
{
	FILE *file = fopen("/proc/self/io", "re");
	unsigned long long bytes = 0;

	if (!file || fscanf(file, "rchar: %llu", &bytes) != 1)
		abort();
	fclose(file);
	return bytes;
}

struct cost {
	uint64_t file, read, delivered, records, damaged;
	int open, end;
};

static struct cost read_file(void)
{
	MEMWATCH_OPTS(memwatch_reader_stats, stats);
	const struct memwatch_record_header *record;
	struct cost cost = { .read = bytes_read() };
	struct memwatch_reader *reader;

	cost.open = memwatch_reader_open(ctx, path, &reader);
	if (cost.open)
		return cost;
	while ((cost.end = memwatch_reader_next(reader, &record)) == 1) {
		cost.delivered += record->size;
		cost.records++;
	}
	memwatch_reader_get_stats(reader, &stats);
	memwatch_reader_close(reader);
	cost.file = stats.file_bytes;
	cost.damaged = stats.damaged;
	cost.read = bytes_read() - cost.read;
	return cost;
}

/* The description of an empty recording, with @room bytes behind it. Returns its length. */
static size_t begin_file(uint8_t **bytes, size_t room)
{
	struct mw_block_header header;
	size_t len;

	memwatch_recording_close(create_recording(REPLACE, 0, 0));
	len = file_load(bytes);
	if (mw_block_header_unpack(&header, *bytes) != MW_HEADER_OK)
		abort();
	len = MW_BLOCK_HEADER_BYTES + header.stored_bytes;
	*bytes = realloc(*bytes, len + room);
	if (!*bytes)
		abort();
	memset(*bytes + len, 0, room);
	return len;
}

/* Headers with a right checksum, each of which claims all bytes behind it. */
static void test_false_headers(void)
{
	enum { COUNT = 200, APART = 65536 };
	struct cost cost;
	uint8_t *bytes;
	size_t len = begin_file(&bytes, COUNT * APART), size = len + COUNT * APART;

	for (unsigned int i = 0; i < COUNT; i++) {
		size_t at = len + i * APART, rest = size - at - MW_BLOCK_HEADER_BYTES - 1;
		struct mw_block_header header = {
			.version = MW_FORMAT_VERSION,
			.kind = MW_BLOCK_RECORDS,
			.codec = MW_CODEC_STORED,
			.stored_bytes = (uint32_t)(rest < 15 * MIB ? rest : 15 * MIB),
			.records = 1,
			.sequence = i,
		};

		header.plain_bytes = header.stored_bytes;
		header.record_bytes = header.plain_bytes & ~7U;
		mw_block_header_pack(bytes + at, &header);
	}
	file_store(bytes, size);
	cost = read_file();
	tap_ok(!cost.open && !cost.end && cost.damaged && cost.read < 8 * cost.file,
	       "%d false headers: %llu bytes are read of a file of %llu", COUNT,
	       (unsigned long long)cost.read, (unsigned long long)cost.file);
	free(bytes);
}

static void test_false_magics(void)
{
	struct cost cost;
	uint8_t *bytes;
	size_t room = MIB, len = begin_file(&bytes, room);

	for (size_t at = 0; at < room; at += MW_MAGIC_BYTES)
		memcpy(bytes + len + at, MW_BLOCK_MAGIC, MW_MAGIC_BYTES);
	file_store(bytes, len + room);
	cost = read_file();
	tap_ok(!cost.open && !cost.end && !cost.records && cost.read < 4 * cost.file,
	       "1 MiB of false magics: %llu bytes are read of a file of %llu",
	       (unsigned long long)cost.read, (unsigned long long)cost.file);
	free(bytes);
}

/* One block with as many records as fit, all of them alike: some hundred bytes. */
static size_t pack_regular_block(struct mw_packer *packer)
{
	struct memwatch_record_tick tick = {
		.h = { .time_ns = 5, .type = MEMWATCH_RECORD_TICK, .size = sizeof(tick) },
	};

	uint8_t *records = malloc(MW_RECORD_BYTES_MAX);
	uint32_t bytes = 0;

	if (!records || mw_packer_init(packer, MW_RECORD_BYTES_MAX, 19))
		abort();
	for (; bytes + sizeof(tick) <= MW_RECORD_BYTES_MAX; bytes += sizeof(tick))
		memcpy(records + bytes, &tick, sizeof(tick));
	mw_packer_pack(packer, records, bytes, 1);
	free(records);
	return packer->packed;
}

static void test_expansion(void)
{
	enum { BLOCKS = 20 };
	struct mw_packer packer;
	size_t len, size = pack_regular_block(&packer);
	struct cost cost;
	uint8_t *bytes;

	len = begin_file(&bytes, BLOCKS * size);
	for (unsigned int i = 0; i < BLOCKS; i++)
		memcpy(bytes + len + i * size, packer.block, size);
	file_store(bytes, len + BLOCKS * size);
	cost = read_file();
	tap_ok(!cost.open && !cost.end &&
		       cost.delivered <= MW_EXPANSION_BASE + MW_EXPANSION * cost.file,
	       "a file of %llu bytes yields %llu bytes of records, not the 320 MiB that it claims",
	       (unsigned long long)cost.file, (unsigned long long)cost.delivered);
	tap_eq(cost.damaged, BLOCKS, "blocks that decode to too much are counted as damaged");
	mw_packer_uninit(&packer);
	free(bytes);
}

/* Before a block that a reader would reject, because it expands too much, the writer pads. */
static void test_padding(void)
{
	struct memwatch_recording *recording = create_recording(REPLACE, 16 << 20, UINT64_MAX);
	struct memwatch_record_tick tick = {
		.h = { .time_ns = 5, .type = MEMWATCH_RECORD_TICK, .size = sizeof(tick) },
	};
	const uint64_t records = 40 * MIB / sizeof(tick);
	struct cost cost;

	for (uint64_t i = 0; i < records; i++)
		if (memwatch_recording_write(recording, &tick.h))
			abort();
	memwatch_recording_close(recording);
	cost = read_file();
	tap_eq(cost.records, records, "40 MiB of equal records are read as they were written");
	tap_eq(cost.damaged, 0, "40 MiB of equal records are not taken for damage");
	tap_ok(cost.file < MIB, "40 MiB of equal records need %llu bytes",
	       (unsigned long long)cost.file);
}

/* Headers whose plain bytes do not fit the number or the size of their records. */
static void test_payload_too_long(void)
{
	struct mw_block_header header = {
		.version = MW_FORMAT_VERSION,
		.kind = MW_BLOCK_RECORDS,
		.codec = MW_CODEC_ZSTD,
		.stored_bytes = 100,
		.plain_bytes = MW_RECORD_BYTES_MAX,
		.records = 1,
		.record_bytes = 48,
	};
	uint8_t bytes[MW_BLOCK_HEADER_BYTES];

	mw_block_header_pack(bytes, &header);
	tap_eq(mw_block_header_unpack(&header, bytes), MW_HEADER_INVALID,
	       "a header whose plain bytes exceed its record bytes by too much is invalid");
	header.plain_bytes = 20;
	header.records = 30;
	header.record_bytes = 480;
	mw_block_header_pack(bytes, &header);
	tap_eq(mw_block_header_unpack(&header, bytes), MW_HEADER_INVALID,
	       "a header with fewer plain bytes than records is invalid");
}

int main(void)
{
	tap_start();
	if (!kit_open())
		return EXIT_FAILURE;
	test_false_headers();
	test_false_magics();
	test_expansion();
	test_padding();
	test_payload_too_long();
	kit_close();
	return tap_done();
}
