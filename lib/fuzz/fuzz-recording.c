// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader of recordings, twice: the input as a file; and, as a fuzzer cannot
 * guess checksums, the input as what is inside a block.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <stdio.h>

#include <memwatch/recording.h>

#include "fuzz.h"
#include "record-codec.h"
#include "ring.h"

static void read_file(const uint8_t *data, size_t size)
{
	const struct memwatch_record_header *record;
	struct memwatch_reader *reader;
	struct memwatch_ctx *ctx;
	char path[64];
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || memwatch_ctx_new(NULL, &ctx))
		abort();
	if (write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!memwatch_reader_open(ctx, path, &reader)) {
		while (memwatch_reader_next(reader, &record) == 1) {
			if (!mw_record_valid(record, record->size))
				abort();
		}
		memwatch_reader_close(reader);
	}
	memwatch_ctx_unref(ctx);
	close(fd);
}

static void decode(const uint8_t *data, size_t size)
{
	struct mw_codec *codec, *again;
	const void *records, *columns, *same;
	size_t bytes, column_bytes, same_bytes;

	if (mw_codec_new(&codec) || mw_codec_new(&again))
		abort();
	if (!mw_codec_decode(codec, data, size, &records, &bytes)) {
		/* what can be decoded can be encoded, and is the same after that */
		if (mw_codec_encode(again, records, bytes, &columns, &column_bytes) ||
		    mw_codec_decode(codec, columns, column_bytes, &same, &same_bytes) ||
		    same_bytes != bytes)
			abort();
	}
	mw_codec_free(codec);
	mw_codec_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_file(data, size);
	decode(data, size);
	return 0;
}
