// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Recordings that are written: by the caller's thread, or by a thread of their own behind a
 * queue. The latter has a context of its own, because a context is used by one thread only.
 */
#include <memwatch/recording.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "base/record.h"
#include "base/timemath.h"
#include "recording/format.h"
#include "recording/overflow.h"
#include "recording/queue.h"
#include "recording/writer.h"

#define BLOCK_BYTES_MIN	    (4U << 10)
#define BLOCK_BYTES_DEFAULT (256U << 10)
#define LEVEL_DEFAULT	    3
#define SYNC_BYTES_DEFAULT  (4ULL << 20)
#define MODE_DEFAULT	    0600

/* Records wait at most this part of block_ns before the thread gets them. */
#define HOLD_PART 8

/**
 * struct memwatch_recording - a recording
 * @ctx: a reference
 * @path: path of the file, for messages
 * @writer: writes the file; used by the thread if there is one
 * @queue: the queue and its thread, or NULL
 * @thread_ctx: the context of the thread
 * @overflow: records that were dropped because the queue was full
 * @taken: statistics of the records taken
 * @written: statistics of the writer, protected by the lock of the queue
 */
struct memwatch_recording {
	struct memwatch_ctx *ctx;
	char *path;
	struct mw_writer *writer;
	struct mw_queue *queue;
	struct memwatch_ctx *thread_ctx;
	struct mw_overflow overflow;
	struct memwatch_recording_stats taken;
	struct memwatch_recording_stats written;
};

/* ----------------------------------------------------------- the thread */

static int sink_write(void *data, const struct memwatch_record_header *record)
{
	struct memwatch_recording *recording = data;

	return mw_writer_write(recording->writer, record);
}

static int sink_flush(void *data, int sync)
{
	struct memwatch_recording *recording = data;

	return mw_writer_flush(recording->writer, sync);
}

static void sink_publish(void *data)
{
	struct memwatch_recording *recording = data;

	mw_writer_stats(recording->writer, &recording->written);
}

static int start_queue(struct memwatch_recording *recording,
		       const struct memwatch_recording_opts *opts)
{
	struct mw_queue_opts queue = {
		.bytes = opts->queue_bytes,
		.hold_ns = opts->block_ns / HOLD_PART,
	};
	struct mw_queue_sink sink = { recording, sink_write, sink_flush, sink_publish };
	int err = memwatch_ctx_new(NULL, &recording->thread_ctx);

	if (!err)
		err = mw_queue_start(&queue, &sink, &recording->queue);
	if (err)
		return mw_fail(recording->ctx, err, "%s: cannot start a thread: %s",
			       recording->path, strerror(-err));
	/* The thread has no work yet. */
	mw_writer_set_ctx(recording->writer, recording->thread_ctx);
	return 0;
}

/* Tells the caller why the thread has failed, if it has. */
static int thread_failure(struct memwatch_recording *recording)
{
	int err = mw_queue_failure(recording->queue);

	if (err)
		mw_fail(recording->ctx, err, "%s", memwatch_ctx_error(recording->thread_ctx));
	return err;
}

/* ------------------------------------------------------------ beginning */

static int complete_recording_opts(struct memwatch_ctx *ctx, struct memwatch_recording_opts *opts,
				   const struct memwatch_recording_opts *user_opts)
{
	int err = mw_opts_copy(ctx, opts, sizeof(*opts), user_opts);

	if (err)
		return err;
	if (!opts->block_bytes)
		opts->block_bytes = BLOCK_BYTES_DEFAULT;
	if (!opts->level)
		opts->level = LEVEL_DEFAULT;
	if (!opts->block_ns)
		opts->block_ns = MW_NSEC_PER_SEC;
	if (!opts->sync_bytes)
		opts->sync_bytes = SYNC_BYTES_DEFAULT;
	if (!opts->mode)
		opts->mode = MODE_DEFAULT;
	if (opts->flags & ~(MEMWATCH_RECORDING_NO_SYNC | MEMWATCH_RECORDING_OVERWRITE) ||
	    opts->reserved || opts->reserved2 || opts->mode & ~07777U)
		return mw_fail(ctx, -EINVAL, "options of a recording: unknown flag or mode");
	if (opts->block_bytes < BLOCK_BYTES_MIN || opts->block_bytes > MW_RECORD_BYTES_MAX)
		return mw_fail(ctx, -EINVAL,
			       "options of a recording: block_bytes %u: "
			       "not from 4 KiB to 16 MiB",
			       opts->block_bytes);
	return 0;
}

static void release_recording(struct memwatch_recording *recording)
{
	mw_overflow_uninit(&recording->overflow);
	memwatch_ctx_unref(recording->thread_ctx);
	memwatch_ctx_unref(recording->ctx);
	free(recording->path);
	free(recording);
}

static int recording_start(struct memwatch_recording *recording,
			   const struct memwatch_stream_info *info,
			   const struct memwatch_recording_opts *opts)
{
	int err;

	if (!recording->path)
		return mw_fail_memory(recording->ctx, "recording");
	err = mw_writer_create(recording->ctx, recording->path, info, opts, &recording->writer);
	if (err)
		return err;
	mw_writer_stats(recording->writer, &recording->written);
	if (opts->queue_bytes)
		err = start_queue(recording, opts);
	if (err)
		mw_writer_discard(recording->writer);
	return err;
}

int memwatch_recording_create(struct memwatch_ctx *ctx, const char *path,
			      const struct memwatch_stream_info *user_info,
			      const struct memwatch_recording_opts *user_opts,
			      struct memwatch_recording **ret)
{
	struct memwatch_recording *recording;
	struct memwatch_recording_opts opts;
	struct memwatch_stream_info info;
	int err;

	if (!path || !user_info)
		return mw_fail(ctx, -EINVAL, "recording: no path or no description");
	err = mw_opts_copy(ctx, &info, sizeof(info), user_info);
	if (!err)
		err = complete_recording_opts(ctx, &opts, user_opts);
	if (err)
		return err;
	recording = calloc(1, sizeof(*recording));
	if (!recording)
		return mw_fail_memory(ctx, path);
	recording->ctx = memwatch_ctx_ref(ctx);
	recording->path = strdup(path);
	err = recording_start(recording, &info, &opts);
	if (err) {
		release_recording(recording);
		return err;
	}
	*ret = recording;
	return 0;
}

/* -------------------------------------------------------------- writing */

static void count_accepted(struct memwatch_recording *recording,
			   const struct memwatch_record_header *record)
{
	struct memwatch_recording_stats *taken = &recording->taken;

	if (!taken->records || record->time_ns < taken->first_ns)
		taken->first_ns = record->time_ns;
	if (record->time_ns > taken->last_ns)
		taken->last_ns = record->time_ns;
	taken->records++;
	taken->record_bytes += record->size;
}

/* Hands on the records of loss. Returns 0, or a negative errno if some are left. */
static int write_losses(struct memwatch_recording *recording,
			int (*write)(struct memwatch_recording *recording,
				     const struct memwatch_record_header *record))
{
	struct memwatch_record_lost lost;
	int cpu = 0, err;

	while (recording->overflow.dropped) {
		cpu = mw_overflow_lost(&recording->overflow, (uint32_t)cpu, &lost);
		if (cpu < 0)
			break;
		err = write(recording, &lost.h);
		if (err)
			return err;
		mw_overflow_reported(&recording->overflow, (uint32_t)cpu);
		count_accepted(recording, &lost.h);
	}
	return 0;
}

static int put_record(struct memwatch_recording *recording,
		      const struct memwatch_record_header *record)
{
	return mw_queue_put(recording->queue, record);
}

static int queue_record(struct memwatch_recording *recording,
			const struct memwatch_record_header *record)
{
	int err = thread_failure(recording);

	if (err) {
		mw_queue_retry(recording->queue);
		return err;
	}
	if (mw_overflow_reserve(&recording->overflow, record))
		return mw_fail_memory(recording->ctx, recording->path);
	if (recording->overflow.dropped && write_losses(recording, put_record)) {
		mw_overflow_drop(&recording->overflow, record);
		return 0;
	}
	if (put_record(recording, record)) {
		mw_overflow_drop(&recording->overflow, record);
		return 0;
	}
	mw_overflow_take(&recording->overflow, record);
	count_accepted(recording, record);
	return 0;
}

int memwatch_recording_write(struct memwatch_recording *recording,
			     const struct memwatch_record_header *record)
{
	int err;

	if (!mw_record_valid(record, record->size))
		return mw_fail(recording->ctx, -EINVAL,
			       "%s: a record of type %u cannot have %u bytes", recording->path,
			       record->type, record->size);
	if (recording->queue)
		return queue_record(recording, record);
	err = mw_writer_write(recording->writer, record);
	if (!err)
		count_accepted(recording, record);
	return err;
}

int memwatch_recording_flush(struct memwatch_recording *recording, int sync)
{
	if (!recording->queue)
		return mw_writer_flush(recording->writer, sync);
	write_losses(recording, put_record);
	mw_queue_flush(recording->queue, sync);
	return thread_failure(recording);
}

int memwatch_recording_stats(const struct memwatch_recording *recording,
			     struct memwatch_recording_stats *ret)
{
	struct memwatch_recording_stats stats;

	if (recording->queue) {
		mw_queue_lock(recording->queue);
		stats = recording->written;
		mw_queue_unlock(recording->queue);
	} else {
		mw_writer_stats(recording->writer, &stats);
	}
	/* What waits in the queue is pending too. */
	stats.pending += recording->taken.records - stats.records;
	stats.records = recording->taken.records;
	stats.record_bytes = recording->taken.record_bytes;
	stats.first_ns = recording->taken.first_ns;
	stats.last_ns = recording->taken.last_ns;
	stats.lost = recording->overflow.total;
	return mw_opts_export(ret, &stats, sizeof(stats));
}

/* --------------------------------------------------------------- ending */

/* Ends the thread, so that the caller's one can use the writer. */
static int stop_queue(struct memwatch_recording *recording)
{
	int err;

	if (!recording->queue)
		return 0;
	mw_queue_join(recording->queue);
	err = thread_failure(recording);
	mw_queue_free(recording->queue);
	recording->queue = NULL;
	mw_writer_set_ctx(recording->writer, recording->ctx);
	return err;
}

static int write_record(struct memwatch_recording *recording,
			const struct memwatch_record_header *record)
{
	return mw_writer_write(recording->writer, record);
}

int memwatch_recording_close(struct memwatch_recording *recording)
{
	int err, close_err;

	if (!recording)
		return 0;
	err = stop_queue(recording);
	if (!err)
		err = write_losses(recording, write_record);
	close_err = mw_writer_close(recording->writer, !err);
	release_recording(recording);
	return err ? err : close_err;
}

void memwatch_recording_discard(struct memwatch_recording *recording)
{
	if (!recording)
		return;
	stop_queue(recording);
	mw_writer_discard(recording->writer);
	release_recording(recording);
}
