// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader of recordings, given any file. The first byte of the input says
 * where the rest comes in, for checksums are not found by guessing:
 *
 *	'F'	a file
 *	'C'	the columns of a block, behind 4 bytes each: its number of records,
 *		and their bytes
 *	'I'	an index
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memwatch/memwatch.h>

#include "recording/columns.h"
#include "recording/block-index.h"
#include "fuzz.h"

/* What the reader gives must be what it promises; a record more is a crash here. */
static void check_record(const struct memwatch_record_header *record)
{
	volatile uint8_t sum = 0;

	if (record->size % 8 || record->size < sizeof(*record) || (uintptr_t)record % 8 ||
	    (record->type == MEMWATCH_RECORD_SAMPLE &&
	     record->size < sizeof(struct memwatch_record_sample)))
		abort();
	for (size_t i = 0; i < record->size; i++)
		sum = (uint8_t)(sum + ((const uint8_t *)record)[i]);
}

static void read_all(struct memwatch_reader *reader)
{
	const struct memwatch_record_header *record;

	for (int i = 0; i < 100000 && memwatch_reader_next(reader, &record) == 1; i++)
		check_record(record);
}

static void fuzz_file(const uint8_t *data, size_t size)
{
	MEMWATCH_OPTS(memwatch_reader_stats, stats);
	struct memwatch_reader *reader;
	struct memwatch_ctx *ctx;
	char path[64];
	int fd = memfd_create("recording", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size || memwatch_ctx_new(NULL, &ctx))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!memwatch_reader_open(ctx, path, &reader)) {
		read_all(reader);
		memwatch_reader_stats(reader, &stats);
		memwatch_reader_seek(reader, stats.first_ns / 2 + stats.last_ns / 2);
		read_all(reader);
		memwatch_reader_close(reader);
	}
	memwatch_ctx_unref(ctx);
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
		if (!mw_columns_fit(columns, record))
			abort();
		mw_columns_add(columns, record);
	}
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

static void fuzz_columns(const uint8_t *data, size_t size)
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
	else if (data[0] == 'C')
		fuzz_columns(data + 1, size - 1);
	else if (data[0] == 'I')
		fuzz_index(data + 1, size - 1);
	return 0;
}
