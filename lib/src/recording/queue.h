/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Records on their way to a thread that writes them: one thread puts them in, and never waits
 * for the other one, which may have to wait for a disk. The memory in the queue is bounded.
 */
#ifndef MW_QUEUE_H
#define MW_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "recording/batch.h"

struct mw_queue;

/**
 * struct mw_queue_sink - what the thread does with the batches; called by it only
 * @data: first argument of the functions
 * @failure: the failure at which the thread has stopped, or 0, for mw_queue_failure(). It stops at
 *	the first one.
 * @write: writes what is left of a batch. Returns 0 or a negative errno; then it is called again
 *	for the same batch.
 * @flush: called when the queue is empty and a flush was asked for
 * @publish: called after each piece of work with the lock of the queue held, so that the other
 *	thread can read its results under mw_queue_lock()
 */
struct mw_queue_sink {
	void *data;
	int *failure;
	int (*write)(void *data, struct mw_batch *batch);
	int (*flush)(void *data, int sync);
	void (*publish)(void *data);
};

/**
 * struct mw_queue_opts - how much may wait
 * @batch_bytes: capacity of a batch
 * @bytes: memory of all batches; but two may exist however small it is
 */
struct mw_queue_opts {
	uint32_t batch_bytes;
	uint64_t bytes;
};

/* Starts the thread. Returns 0 or a negative errno. */
int mw_queue_start(const struct mw_queue_opts *opts, const struct mw_queue_sink *sink,
		   struct mw_queue **ret);

/* An empty batch, with room for a record of @size bytes, or NULL if the queue is full. */
struct mw_batch *mw_queue_take(struct mw_queue *queue, uint32_t size);

/* Hands over a batch that mw_queue_take() has returned. */
void mw_queue_put(struct mw_queue *queue, struct mw_batch *batch);

/*
 * Asks for a flush after all that is in the queue, and for a new attempt if the thread has failed.
 * With @sync, the file is synced too, and the call returns when this is done or has failed; else it
 * returns at once.
 */
void mw_queue_flush(struct mw_queue *queue, int sync);

/* Reads the failure that a sink has, without the lock: it is asked for with each record. */
static inline int mw_queue_failure(const int *failure)
{
	return __atomic_load_n(failure, __ATOMIC_ACQUIRE);
}

/* Lets the thread try again what has failed. */
void mw_queue_retry(struct mw_queue *queue);

void mw_queue_lock(struct mw_queue *queue);
void mw_queue_unlock(struct mw_queue *queue);

/* Ends the thread when it has written everything, or has failed; then mw_queue_free(). */
void mw_queue_join(struct mw_queue *queue);
void mw_queue_free(struct mw_queue *queue);

#endif /* MW_QUEUE_H */
