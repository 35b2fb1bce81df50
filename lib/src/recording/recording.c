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
#include "recording/batch.h"
#include "recording/format.h"
#include "recording/overflow.h"
#include "recording/queue.h"
#include "recording/writer.h"

#define BLOCK_BYTES_MIN	    (4U << 10)
#define BLOCK_BYTES_DEFAULT (256U << 10)
#define LEVEL_DEFAULT	    -3
#define SYNC_BYTES_DEFAULT  (4ULL << 20)
#define MODE_DEFAULT	    0600

/**
 * struct memwatch_recording - a recording
 * @ctx: a reference
 * @path: path of the file, for messages
 * @block_ns: see the options
 * @writer: writes the file; used by the thread if there is one
 * @batch: the records that are being collected; with a queue, NULL if there are none
 * @queue: the queue and its thread, or NULL
 * @thread_ctx: the context of the thread
 * @failure: the failure at which the thread has stopped, or 0, see mw_queue_failure()
 * @overflow: records that were dropped because the queue was full
 * @passed: statistics of the batches that were passed on
 * @written: statistics of the writer, protected by the lock of the queue
 */
struct memwatch_recording {
	struct memwatch_ctx *ctx;
	char *path;
	uint64_t block_ns;
	struct mw_writer *writer;
	struct mw_batch *batch;
	struct mw_queue *queue;
	struct memwatch_ctx *thread_ctx;
	int failure;
	struct mw_overflow overflow;
	struct memwatch_recording_stats passed;
	struct memwatch_recording_stats written;
};

/* ----------------------------------------------------------- the thread */

static int sink_write(void *data, struct mw_batch *batch)
{
	struct memwatch_recording *recording = data;

	return mw_writer_write(recording->writer, batch);
}

static int sink_flush(void *data, int sync)
{
	struct memwatch_recording *recording = data;

	return sync ? mw_writer_sync(recording->writer) : 0;
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
		.batch_bytes = mw_writer_batch_bytes(recording->writer),
		.bytes = opts->queue_bytes,
	};
	struct mw_queue_sink sink = {
		.data = recording,
		.failure = &recording->failure,
		.write = sink_write,
		.flush = sink_flush,
		.publish = sink_publish,
	};
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
	int err = mw_queue_failure(&recording->failure);

	if (err)
		mw_fail(recording->ctx, err, "%s", memwatch_ctx_error(recording->thread_ctx));
	return err;
}

/* A batch outside the queue is the only one, so it has room for any record. */
static int create_batch(struct memwatch_recording *recording)
{
	uint32_t capacity = mw_writer_batch_bytes(recording->writer);

	recording->batch = mw_batch_new(capacity, mw_batch_room(capacity, MW_RECORD_SIZE_MAX));
	return recording->batch ? 0 : mw_fail_memory(recording->ctx, recording->path);
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
	free(recording->batch);
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
	recording->block_ns = opts->block_ns;
	err = opts->queue_bytes ? start_queue(recording, opts) : create_batch(recording);
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

/* Adds the records of a batch to the statistics. */
static void count_batch(struct memwatch_recording_stats *stats, const struct mw_batch *batch)
{
	if (!batch || !batch->count)
		return;
	if (!stats->records || batch->first_ns < stats->first_ns)
		stats->first_ns = batch->first_ns;
	stats->last_ns = mw_max_u64(stats->last_ns, batch->last_ns);
	stats->records += batch->count;
	stats->record_bytes += batch->bytes;
}

/* Passes the collected records on. Returns 0 or a negative errno; then they stay collected. */
static int pass_batch(struct memwatch_recording *recording)
{
	int err = 0;

	if (!recording->batch || !recording->batch->bytes)
		return 0;
	if (recording->queue) {
		count_batch(&recording->passed, recording->batch);
		mw_queue_put(recording->queue, recording->batch);
		recording->batch = NULL;
		return 0;
	}
	err = mw_writer_write(recording->writer, recording->batch);
	if (err)
		return err;
	count_batch(&recording->passed, recording->batch);
	mw_batch_reset(recording->batch);
	return 0;
}

/*
 * Collects a record. Returns 0, -EAGAIN if the queue is full, or a failure of the writer; then
 * the record was not taken.
 */
static int collect_record(struct memwatch_recording *recording,
			  const struct memwatch_record_header *record)
{
	int err;

	if (!recording->batch || !mw_batch_add(recording->batch, record, recording->block_ns)) {
		err = pass_batch(recording);
		if (err)
			return err;
		if (recording->queue)
			recording->batch = mw_queue_take(recording->queue, record->size);
		if (!recording->batch)
			return -EAGAIN;
		mw_batch_add(recording->batch, record, recording->block_ns);
	}
	return 0;
}

/* Collects the records of loss. Returns 0, or a negative errno if some are left. */
static int collect_losses(struct memwatch_recording *recording)
{
	uint64_t last_ns = recording->passed.last_ns;
	struct memwatch_record_lost lost;
	int cpu = 0, err;

	if (recording->batch)
		last_ns = mw_max_u64(last_ns, recording->batch->last_ns);
	while (recording->overflow.dropped) {
		cpu = mw_overflow_lost(&recording->overflow, (uint32_t)cpu, last_ns, &lost);
		if (cpu < 0)
			break;
		err = collect_record(recording, &lost.h);
		if (err)
			return err;
		mw_overflow_reported(&recording->overflow, (uint32_t)cpu);
	}
	return 0;
}

static int drop_record(struct memwatch_recording *recording,
		       const struct memwatch_record_header *record)
{
	return mw_overflow_drop(&recording->overflow, record)
		       ? mw_fail_memory(recording->ctx, recording->path)
		       : 0;
}

/* What does not happen with each record. */
static __attribute__((noinline)) int write_slowly(struct memwatch_recording *recording,
						  const struct memwatch_record_header *record)
{
	int err;

	if (!mw_record_valid(record, record->size))
		return mw_fail(recording->ctx, -EINVAL,
			       "%s: a record of type %u cannot have %u bytes", recording->path,
			       record->type, record->size);
	if (recording->queue) {
		err = thread_failure(recording);
		if (err) {
			mw_queue_retry(recording->queue);
			return err;
		}
	}
	err = collect_losses(recording);
	if (!err)
		err = collect_record(recording, record);
	return err == -EAGAIN ? drop_record(recording, record) : err;
}

/* Most records only have to be copied. */
int memwatch_recording_write(struct memwatch_recording *recording,
			     const struct memwatch_record_header *record)
{
	if (__builtin_expect(recording->batch && !recording->overflow.dropped &&
				     mw_record_valid(record, record->size) &&
				     !mw_queue_failure(&recording->failure),
			     1) &&
	    mw_batch_append(recording->batch, record, recording->block_ns))
		return 0;
	return write_slowly(recording, record);
}

int memwatch_recording_flush(struct memwatch_recording *recording, int sync)
{
	int err, before;

	if (recording->queue) {
		collect_losses(recording);
		pass_batch(recording);
		/* The kernel reports a failed write once: what failed before is not forgotten. */
		before = thread_failure(recording);
		mw_queue_flush(recording->queue, sync);
		err = thread_failure(recording);
		return before ? before : err;
	}
	err = pass_batch(recording);
	if (!err && sync)
		err = mw_writer_sync(recording->writer);
	return err;
}

int memwatch_recording_get_stats(const struct memwatch_recording *recording,
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
	stats.pending = stats.records;
	stats.records = recording->passed.records;
	stats.record_bytes = recording->passed.record_bytes;
	stats.first_ns = recording->passed.first_ns;
	stats.last_ns = recording->passed.last_ns;
	count_batch(&stats, recording->batch);
	stats.pending = stats.records - stats.pending;
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

int memwatch_recording_close(struct memwatch_recording *recording)
{
	int err, close_err;

	if (!recording)
		return 0;
	/* The kernel reports a failed write once, so a second attempt would seem to succeed. */
	err = pass_batch(recording);
	if (!err)
		err = stop_queue(recording);
	if (!err && recording->overflow.dropped) {
		/* The queue is empty now. */
		err = create_batch(recording);
		if (!err)
			err = collect_losses(recording);
	}
	if (!err)
		err = pass_batch(recording);
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
