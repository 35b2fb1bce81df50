// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The replay backend: a recording as a stream.
 */
#include "backend.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include <memwatch/recording.h>

#include "context.h"

struct replay_stream {
	struct memwatch_stream stream;
	struct memwatch_reader *reader;
	uint64_t produced;
	uint64_t late;
	uint64_t forced;
	uint64_t lost;
	uint64_t watermark_ns;
};

static void count(struct replay_stream *replay, const struct memwatch_record_header *header)
{
	if (header->type == MEMWATCH_RECORD_LOST) {
		replay->lost += ((const struct memwatch_record_lost *)header)->count;
		return;
	}
	replay->produced++;
	replay->late += !!(header->flags & MEMWATCH_RECORD_F_LATE);
	replay->forced += !!(header->flags & MEMWATCH_RECORD_F_FORCED);
	if (!(header->flags & MEMWATCH_RECORD_F_LATE))
		replay->watermark_ns = header->time_ns;
}

static int replay_next(struct memwatch_stream *stream, const struct memwatch_record_header **ret)
{
	struct replay_stream *replay = (struct replay_stream *)stream;
	int err;

	if (stream->stopped)
		return 0;
	err = memwatch_reader_next(replay->reader, ret);
	if (err == 1)
		count(replay, *ret);
	return err;
}

static int replay_stats(struct memwatch_stream *stream, struct memwatch_stream_stats *ret)
{
	struct replay_stream *replay = (struct replay_stream *)stream;
	MEMWATCH_OPTS(memwatch_reader_stats, reader);
	int err = memwatch_reader_stats(replay->reader, &reader);

	ret->produced = replay->produced;
	ret->delivered = replay->produced;
	ret->late = replay->late;
	ret->forced = replay->forced;
	ret->lost = replay->lost;
	ret->malformed = reader.damaged;
	ret->watermark_ns = replay->watermark_ns;
	ret->truncated = reader.truncated || reader.damaged;
	return err;
}

static void replay_close(struct memwatch_stream *stream)
{
	struct replay_stream *replay = (struct replay_stream *)stream;

	memwatch_reader_close(replay->reader);
	free(replay);
}

static const struct mw_backend_ops replay_ops = {
	.name = "replay",
	.next = replay_next,
	.stats = replay_stats,
	.close = replay_close,
};

int memwatch_stream_open_file(struct memwatch_ctx *ctx, const char *path,
			      struct memwatch_stream **ret)
{
	struct replay_stream *replay = calloc(1, sizeof(*replay));
	int err;

	if (!replay)
		return mw_fail(ctx, -ENOMEM, "%s: no memory", path);
	err = memwatch_reader_open(ctx, path, &replay->reader);
	if (err) {
		free(replay);
		return err;
	}
	replay->stream.info = *memwatch_reader_info(replay->reader);
	mw_stream_init(&replay->stream, ctx, &replay_ops);
	*ret = &replay->stream;
	return 0;
}
