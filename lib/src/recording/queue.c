// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A list of batches, see queue.h. A batch that was written is used again, so the memory grows
 * only while the writing thread is behind.
 */
#include "recording/queue.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

/* Batches that are kept although nothing waits: one is filled while another one is written. */
#define BATCHES_KEPT 2

/**
 * struct mw_queue - a queue
 * @opts: options
 * @sink: what the thread does
 * @thread: the thread that writes
 * @lock: protects what follows
 * @work: something has changed for the thread
 * @done: something has changed for who waits for the thread
 * @first: the oldest batch, which the thread is writing
 * @last: the newest batch
 * @spare: batches that are not in use, with room for one block each
 * @batches: how many batches exist
 * @spares: how many of them are in @spare
 * @memory: of the batches that exist
 * @flush: a flush was asked for
 * @sync: with fdatasync
 * @busy: the thread is working
 * @stop: the thread shall end when nothing is left
 */
struct mw_queue {
	struct mw_queue_opts opts;
	struct mw_queue_sink sink;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_cond_t done;
	struct mw_batch *first;
	struct mw_batch *last;
	struct mw_batch *spare;
	unsigned int batches;
	unsigned int spares;
	uint64_t memory;
	int flush;
	int sync;
	bool busy;
	bool stop;
};

void mw_queue_lock(struct mw_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
}

void mw_queue_unlock(struct mw_queue *queue)
{
	pthread_mutex_unlock(&queue->lock);
}

/* ------------------------------------------------------------- batches */

static void drop_batch(struct mw_queue *queue, struct mw_batch *batch)
{
	queue->memory -= mw_batch_memory(batch->room);
	queue->batches--;
	free(batch);
}

static struct mw_batch *take_spare(struct mw_queue *queue)
{
	struct mw_batch *batch = queue->spare;

	if (batch) {
		queue->spare = batch->next;
		queue->spares--;
	}
	return batch;
}

/* ----------------------------------------------------------- the thread */

/* Takes the first batch, which was written, out of the list. */
static void retire_first(struct mw_queue *queue)
{
	struct mw_batch *batch = queue->first;

	queue->first = batch->next;
	if (queue->spares >= BATCHES_KEPT || batch->room != queue->opts.batch_bytes) {
		drop_batch(queue, batch);
		return;
	}
	batch->next = queue->spare;
	queue->spare = batch;
	queue->spares++;
}

/* One piece of work, without the lock. Returns 0 or a negative errno. */
static int queue_work(struct mw_queue *queue)
{
	struct mw_batch *batch = queue->first;
	int sync = queue->sync, err;

	if (!batch)
		queue->flush = queue->sync = 0;
	queue->busy = true;
	mw_queue_unlock(queue);
	err = batch ? queue->sink.write(queue->sink.data, batch)
		    : queue->sink.flush(queue->sink.data, sync);
	mw_queue_lock(queue);
	queue->busy = false;
	if (batch && !err)
		retire_first(queue);
	if (!batch && err) {
		queue->flush = 1;
		queue->sync |= sync;
	}
	queue->sink.publish(queue->sink.data);
	return err;
}

static void set_failure(struct mw_queue *queue, int err)
{
	__atomic_store_n(queue->sink.failure, err, __ATOMIC_RELEASE);
}

static void *queue_run(void *data)
{
	struct mw_queue *queue = data;

	mw_queue_lock(queue);
	for (;;) {
		bool idle = *queue->sink.failure || (!queue->first && !queue->flush);

		if (idle && queue->stop)
			break;
		if (idle) {
			pthread_cond_wait(&queue->work, &queue->lock);
			continue;
		}
		set_failure(queue, queue_work(queue));
		pthread_cond_broadcast(&queue->done);
	}
	mw_queue_unlock(queue);
	return NULL;
}

/* ------------------------------------------------------- the other side */

void mw_queue_put(struct mw_queue *queue, struct mw_batch *batch)
{
	batch->next = NULL;
	mw_queue_lock(queue);
	if (queue->first)
		queue->last->next = batch;
	else
		queue->first = batch;
	queue->last = batch;
	pthread_cond_signal(&queue->work);
	mw_queue_unlock(queue);
}

/* Whether one more batch may exist. A large record takes the place of spare batches. */
static bool reserve_batch(struct mw_queue *queue, uint32_t room)
{
	struct mw_batch *spare;

	while ((spare = take_spare(queue)))
		drop_batch(queue, spare);
	if (queue->batches >= 2 && queue->memory + mw_batch_memory(room) > queue->opts.bytes)
		return false;
	queue->batches++;
	queue->memory += mw_batch_memory(room);
	return true;
}

struct mw_batch *mw_queue_take(struct mw_queue *queue, uint32_t size)
{
	uint32_t room = mw_batch_room(queue->opts.batch_bytes, size);
	struct mw_batch *batch = NULL;
	bool reserved;

	mw_queue_lock(queue);
	if (room == queue->opts.batch_bytes)
		batch = take_spare(queue);
	reserved = !batch && reserve_batch(queue, room);
	mw_queue_unlock(queue);
	if (batch)
		mw_batch_reset(batch);
	if (!reserved)
		return batch;
	batch = mw_batch_new(queue->opts.batch_bytes, room);
	if (!batch) {
		mw_queue_lock(queue);
		queue->batches--;
		queue->memory -= mw_batch_memory(room);
		mw_queue_unlock(queue);
	}
	return batch;
}

void mw_queue_flush(struct mw_queue *queue, int sync)
{
	mw_queue_lock(queue);
	queue->flush = 1;
	queue->sync |= sync;
	set_failure(queue, 0);
	pthread_cond_signal(&queue->work);
	while (sync && !*queue->sink.failure && (queue->first || queue->flush || queue->busy))
		pthread_cond_wait(&queue->done, &queue->lock);
	mw_queue_unlock(queue);
}

void mw_queue_retry(struct mw_queue *queue)
{
	mw_queue_lock(queue);
	set_failure(queue, 0);
	pthread_cond_signal(&queue->work);
	mw_queue_unlock(queue);
}

/* ------------------------------------------------------------- lifetime */

/*
 * The thread that fills the queue may have a real-time priority. If it must wait for the lock, the
 * one that holds it gets this priority; otherwise busy processes could keep it from going on.
 */
static void init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

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
	queue->sink = *sink;
	init_lock(&queue->lock);
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

static void free_batches(struct mw_batch *batch)
{
	struct mw_batch *next;

	for (; batch; batch = next) {
		next = batch->next;
		free(batch);
	}
}

void mw_queue_join(struct mw_queue *queue)
{
	mw_queue_lock(queue);
	queue->stop = true;
	pthread_cond_signal(&queue->work);
	mw_queue_unlock(queue);
	pthread_join(queue->thread, NULL);
}

void mw_queue_free(struct mw_queue *queue)
{
	free_batches(queue->first);
	free_batches(queue->spare);
	pthread_cond_destroy(&queue->work);
	pthread_cond_destroy(&queue->done);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}
