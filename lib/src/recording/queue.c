// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A list of chunks of records, see queue.h. The lock is taken once for each chunk. A chunk that
 * was written is used again, so the memory grows only while the writing thread is behind.
 */
#include "recording/queue.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* The largest record must fit into a chunk. */
#define CHUNK_BYTES (128U << 10)

/* Chunks that are kept although nothing waits: one is filled while another one is written. */
#define CHUNKS_KEPT 2

struct chunk {
	struct chunk *next;
	uint64_t first_ns;
	uint32_t used;
	uint32_t taken; /* bytes that the thread has written */
	uint8_t records[CHUNK_BYTES] __attribute__((aligned(8)));
};

/**
 * struct mw_queue - a queue
 * @opts: options
 * @sink: what the thread does
 * @thread: the thread that writes
 * @open: the chunk that is being filled; only the thread that fills it uses it
 * @lock: protects what follows
 * @work: something has changed for the thread
 * @done: something has changed for who waits for the thread
 * @first: the oldest chunk, which the thread is writing
 * @last: the newest chunk
 * @spare: chunks that are not in use
 * @chunks: how many chunks exist
 * @spares: how many of them are in @spare
 * @flush: a flush was asked for
 * @sync: with fdatasync
 * @busy: the thread is working
 * @stop: the thread shall end when nothing is left
 * @err: the failure at which the thread stopped; also read without the lock
 */
struct mw_queue {
	struct mw_queue_opts opts;
	struct mw_queue_sink sink;
	pthread_t thread;
	struct chunk *open;
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_cond_t done;
	struct chunk *first;
	struct chunk *last;
	struct chunk *spare;
	unsigned int chunks;
	unsigned int spares;
	int flush;
	int sync;
	bool busy;
	bool stop;
	int err;
};

void mw_queue_lock(struct mw_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
}

void mw_queue_unlock(struct mw_queue *queue)
{
	pthread_mutex_unlock(&queue->lock);
}

/* ----------------------------------------------------------- the thread */

/* Writes what is left of a chunk. Returns 0 or the first failure. */
static int chunk_write(const struct mw_queue *queue, struct chunk *chunk)
{
	const struct memwatch_record_header *record;
	int err;

	while (chunk->taken < chunk->used) {
		record = (const void *)(chunk->records + chunk->taken);
		err = queue->sink.write(queue->sink.data, record);
		if (err)
			return err;
		chunk->taken += record->size;
	}
	return 0;
}

/* Takes the first chunk, which was written, out of the list. */
static void chunk_retire(struct mw_queue *queue)
{
	struct chunk *chunk = queue->first;

	queue->first = chunk->next;
	if (queue->spares >= CHUNKS_KEPT) {
		queue->chunks--;
		free(chunk);
		return;
	}
	chunk->next = queue->spare;
	queue->spare = chunk;
	queue->spares++;
}

/* One piece of work, without the lock. Returns 0 or a negative errno. */
static int queue_work(struct mw_queue *queue)
{
	struct chunk *chunk = queue->first;
	int sync = queue->sync, err;

	if (!chunk)
		queue->flush = queue->sync = 0;
	queue->busy = true;
	mw_queue_unlock(queue);
	err = chunk ? chunk_write(queue, chunk) : queue->sink.flush(queue->sink.data, sync);
	mw_queue_lock(queue);
	queue->busy = false;
	if (chunk && !err)
		chunk_retire(queue);
	if (!chunk && err) {
		queue->flush = 1;
		queue->sync |= sync;
	}
	queue->sink.publish(queue->sink.data);
	return err;
}

static void *queue_run(void *data)
{
	struct mw_queue *queue = data;
	int err;

	mw_queue_lock(queue);
	for (;;) {
		if (queue->err ? queue->stop : !queue->first && !queue->flush && queue->stop)
			break;
		if (queue->err || (!queue->first && !queue->flush)) {
			pthread_cond_wait(&queue->work, &queue->lock);
			continue;
		}
		err = queue_work(queue);
		__atomic_store_n(&queue->err, err, __ATOMIC_RELEASE);
		pthread_cond_broadcast(&queue->done);
	}
	mw_queue_unlock(queue);
	return NULL;
}

/* ------------------------------------------------------- the other side */

static void queue_pass_open(struct mw_queue *queue)
{
	struct chunk *chunk = queue->open;

	if (!chunk)
		return;
	queue->open = NULL;
	chunk->next = NULL;
	mw_queue_lock(queue);
	if (queue->first)
		queue->last->next = chunk;
	else
		queue->first = chunk;
	queue->last = chunk;
	pthread_cond_signal(&queue->work);
	mw_queue_unlock(queue);
}

/* An empty chunk, or NULL if there may be no more or memory ran out. */
static struct chunk *queue_take_chunk(struct mw_queue *queue)
{
	struct chunk *chunk;
	bool more;

	mw_queue_lock(queue);
	chunk = queue->spare;
	if (chunk) {
		queue->spare = chunk->next;
		queue->spares--;
	}
	more = !chunk && (uint64_t)queue->chunks * CHUNK_BYTES < queue->opts.bytes;
	queue->chunks += more;
	mw_queue_unlock(queue);
	if (!more)
		return chunk;
	chunk = malloc(sizeof(*chunk));
	if (!chunk) {
		mw_queue_lock(queue);
		queue->chunks--;
		mw_queue_unlock(queue);
	}
	return chunk;
}

int mw_queue_put(struct mw_queue *queue, const struct memwatch_record_header *record)
{
	struct chunk *chunk = queue->open;

	if (chunk && (record->size > CHUNK_BYTES - chunk->used ||
		      (record->time_ns > chunk->first_ns &&
		       record->time_ns - chunk->first_ns >= queue->opts.hold_ns))) {
		queue_pass_open(queue);
		chunk = NULL;
	}
	if (!chunk) {
		chunk = queue_take_chunk(queue);
		if (!chunk)
			return -EAGAIN;
		chunk->used = chunk->taken = 0;
		chunk->first_ns = record->time_ns;
		queue->open = chunk;
	}
	memcpy(chunk->records + chunk->used, record, record->size);
	chunk->used += record->size;
	return 0;
}

void mw_queue_flush(struct mw_queue *queue, int sync)
{
	queue_pass_open(queue);
	mw_queue_lock(queue);
	queue->flush = 1;
	queue->sync |= sync;
	queue->err = 0;
	pthread_cond_signal(&queue->work);
	while (sync && !queue->err && (queue->first || queue->flush || queue->busy))
		pthread_cond_wait(&queue->done, &queue->lock);
	mw_queue_unlock(queue);
}

int mw_queue_failure(const struct mw_queue *queue)
{
	return __atomic_load_n(&queue->err, __ATOMIC_ACQUIRE);
}

void mw_queue_retry(struct mw_queue *queue)
{
	mw_queue_lock(queue);
	__atomic_store_n(&queue->err, 0, __ATOMIC_RELAXED);
	pthread_cond_signal(&queue->work);
	mw_queue_unlock(queue);
}

/* ------------------------------------------------------------- lifetime */

/* The signals of the process are for its other threads. */
static int start_thread(struct mw_queue *queue)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = -pthread_create(&queue->thread, NULL, queue_run, queue);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

int mw_queue_start(const struct mw_queue_opts *opts, const struct mw_queue_sink *sink,
		   struct mw_queue **ret)
{
	struct mw_queue *queue = calloc(1, sizeof(*queue));
	int err;

	if (!queue)
		return -ENOMEM;
	queue->opts = *opts;
	if (queue->opts.bytes < 2 * CHUNK_BYTES)
		queue->opts.bytes = 2 * CHUNK_BYTES;
	queue->sink = *sink;
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->work, NULL);
	pthread_cond_init(&queue->done, NULL);
	err = start_thread(queue);
	if (err) {
		free(queue);
		return err;
	}
	*ret = queue;
	return 0;
}

static void free_chunks(struct chunk *chunk)
{
	struct chunk *next;

	for (; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
}

void mw_queue_join(struct mw_queue *queue)
{
	queue_pass_open(queue);
	mw_queue_lock(queue);
	queue->stop = true;
	pthread_cond_signal(&queue->work);
	mw_queue_unlock(queue);
	pthread_join(queue->thread, NULL);
}

void mw_queue_free(struct mw_queue *queue)
{
	free_chunks(queue->first);
	free_chunks(queue->spare);
	pthread_cond_destroy(&queue->work);
	pthread_cond_destroy(&queue->done);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}
