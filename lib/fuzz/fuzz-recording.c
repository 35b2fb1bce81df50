// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader of recordings, given any file. The first byte of the input says
 * where the rest comes in, for checksums are not found by guessing:
 *
 *	'F'	a file
 *	'B'	blocks behind a description, whose checksums are made right
 *	'C'	the columns of a block, behind 4 bytes each: its number of records,
 *		and their bytes
 *	'D'	the same of version 1 of the format
 *	'I'	an index
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memwatch/memwatch.h>

#include "base/record.h"
#include "recording/columns.h"
#include "recording/block-index.h"
#include "recording/format.h"
#include "fuzz.h"

/* What the reader gives must be what it promises; a record more is a crash here. */
static void check_record(const struct memwatch_record_header *record)
{
	volatile uint8_t sum = 0;

	if (!mw_record_readable(record->type, record->size) || (uintptr_t)record % 8)
		abort();
	for (size_t i = 0; i < record->size; i++)
		sum = (uint8_t)(sum + ((const uint8_t *)record)[i]);
}

/*
 * The records of a file of @size bytes must not be too many for it. Records of an older schema
 * become longer when they are read, so each counts with the size that it has in a file.
 */
static void read_all(struct memwatch_reader *reader, size_t size)
{
	const struct memwatch_record_header *record;
	uint64_t bytes = 0;

	while (memwatch_reader_next(reader, &record) == 1) {
		unsigned int now = mw_record_size_min(record->type);
		const struct mw_record_type *known = mw_record_type(record->type);

		check_record(record);
		if (record->size < now)
			abort();
		bytes += record->size - (known ? now - known->size_first : 0);
		if (bytes > MW_EXPANSION_BASE + MW_EXPANSION * size)
			abort();
	}
}

/* Reads a file of memory, from its start and after a seek. */
static void read_memory_file(int fd, size_t size)
{
	MEMWATCH_OPTS(memwatch_reader_stats, stats);
	struct memwatch_reader *reader;
	struct memwatch_ctx *ctx;
	char path[64];

	if (memwatch_ctx_new(NULL, &ctx))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!memwatch_reader_open(ctx, path, &reader)) {
		read_all(reader, size);
		memwatch_reader_get_stats(reader, &stats);
		memwatch_reader_seek(reader, stats.first_ns / 2 + stats.last_ns / 2);
		read_all(reader, size);
		memwatch_reader_close(reader);
	}
	memwatch_ctx_unref(ctx);
}

static void fuzz_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	read_memory_file(fd, size);
	close(fd);
}

#define SHORT_HEADER 16 /* of a block in the input of fuzz_blocks() */

/*
 * Makes a block of 16 bytes for its header and the payload behind them. The first byte says
 * what is wrong: its payload, its header, that it claims more bytes than it has, or that it claims
 * far more records, or columns, than a block may have.
 */
static size_t put_block(uint8_t *to, const uint8_t *data, size_t size, uint64_t sequence)
{
	size_t payload = mw_get16(data + 2);
	uint32_t more_records = data[0] & 8 ? 1U << 30 : 0,
		 more_plain = data[0] & 16 ? 1U << 30 : 0;
	struct mw_block_header header = {
		.version = MW_FORMAT_VERSION - (data[1] >> 4 & 1),
		.kind = data[1] & 7,
		.codec = data[1] >> 3 & 1,
		.records = mw_get16(data + 4),
		.record_bytes = (mw_get32(data + 6) & 0x1ffffff) + more_records,
		.plain_bytes = (mw_get32(data + 10) & 0x1ffffff) + more_plain,
		.first_ns = data[14],
		.last_ns = data[15],
		.sequence = sequence,
	};

	data += SHORT_HEADER;
	size -= SHORT_HEADER;
	if (payload > size)
		payload = size;
	header.stored_bytes = (uint32_t)payload + (data[-16] & 4 ? 100 : 0);
	if (header.codec == MW_CODEC_STORED)
		header.plain_bytes = header.stored_bytes;
	header.stored_crc = mw_crc32c(data, payload) + (data[-16] & 1);
	mw_block_header_pack(to, &header);
	to[60] ^= data[-16] & 2;
	memcpy(to + MW_BLOCK_HEADER_BYTES, data, payload);
	return payload;
}

static void fuzz_blocks(const uint8_t *data, size_t size)
{
	/* Each block is longer than what it is made of. */
	uint8_t *file = calloc(1, MW_BLOCK_HEADER_BYTES + size * 5);
	struct mw_block_header info = { .version = MW_FORMAT_VERSION, .kind = MW_BLOCK_INFO };
	size_t len = MW_BLOCK_HEADER_BYTES, payload;
	int fd = memfd_create("recording", MFD_CLOEXEC);
	uint64_t sequence = 1;

	if (fd < 0 || !file)
		abort();
	mw_block_header_pack(file, &info);
	while (size >= SHORT_HEADER) {
		payload = put_block(file + len, data, size, sequence++);
		len += MW_BLOCK_HEADER_BYTES + payload;
		data += SHORT_HEADER + payload;
		size -= SHORT_HEADER + payload;
	}
	if (write(fd, file, len) != (ssize_t)len)
		abort();
	free(file);
	read_memory_file(fd, len);
	close(fd);
}

/* What can be decoded can be encoded, and decoded to the same again. */
static void check_again(const uint8_t *records, uint32_t rows, uint32_t bytes)
{
	struct mw_columns *columns = calloc(1, sizeof(*columns));
	uint8_t *plain = malloc(mw_columns_bound(bytes));
	uint8_t *again = malloc(bytes);
	const struct memwatch_record_header *record;
	size_t len;

	if (!columns || !plain || !again || mw_columns_reserve(columns, rows))
		abort();
	for (uint32_t at = 0; at < bytes; at += record->size) {
		record = (const void *)(records + at);
		check_record(record);
	}
	mw_columns_index(columns, records, bytes);
	if (columns->bytes != bytes || columns->rows != rows)
		abort();
	len = mw_columns_encode(columns, records, plain);
	if (len > mw_columns_bound(bytes) ||
	    mw_columns_decode(columns, plain, len, rows, again, bytes) ||
	    memcmp(records, again, bytes))
		abort();
	mw_columns_uninit(columns);
	free(columns);
	free(plain);
	free(again);
}

static void fuzz_columns(const uint8_t *data, size_t size, bool dense)
{
	struct mw_columns *columns;
	uint32_t rows, bytes;
	uint8_t *records;

	if (size < 8)
		return;
	rows = mw_get32(data);
	bytes = mw_get32(data + 4);
	/* what the header of a block is checked for */
	if (!rows || bytes > 1 << 20 || rows > bytes / sizeof(struct memwatch_record_header))
		return;
	columns = calloc(1, sizeof(*columns));
	records = malloc(bytes);
	if (!columns || !records || mw_columns_reserve(columns, rows))
		abort();
	columns->dense = dense;
	if (!mw_columns_decode(columns, data + 8, size - 8, rows, records, bytes))
		check_again(records, rows, bytes);
	mw_columns_uninit(columns);
	free(columns);
	free(records);
}

static void fuzz_index(const uint8_t *data, size_t size)
{
	struct mw_block_index_entry total;
	struct mw_block_index index;

	if (mw_block_index_unpack(&index, data, size, 1 << 30))
		return;
	mw_block_index_total(&index, &total);
	mw_block_index_find(&index, total.last_ns / 2);
	mw_block_index_uninit(&index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (data[0] == 'F')
		fuzz_file(data + 1, size - 1);
	else if (data[0] == 'B')
		fuzz_blocks(data + 1, size - 1);
	else if (data[0] == 'C')
		fuzz_columns(data + 1, size - 1, false);
	else if (data[0] == 'D')
		fuzz_columns(data + 1, size - 1, true);
	else if (data[0] == 'I')
		fuzz_index(data + 1, size - 1);
	return 0;
}
