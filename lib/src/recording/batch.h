/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Records that are collected until they are written together: one block of a recording, if they
 * fit into one.
 */
#ifndef MW_BATCH_H
#define MW_BATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <linux/memwatch.h>

#define MW_RECORD_SIZE_MAX (64U << 10) /* the size of a record has 16 bits */

/**
 * struct mw_batch - records, one directly behind the other
 * @next: for a list
 * @first_ns: smallest time of a record
 * @last_ns: largest time of a record
 * @capacity: bytes of records that make a block; a record that is larger is alone in its batch
 * @bytes: how much of @records is used
 * @room: size of @records
 * @count: number of records
 * @written: how much of that was written
 * @records: the records
 */
struct mw_batch {
	struct mw_batch *next;
	uint64_t first_ns;
	uint64_t last_ns;
	uint32_t capacity;
	uint32_t bytes;
	uint32_t room;
	uint32_t count;
	uint32_t written;
	uint8_t records[] __attribute__((aligned(8)));
};

static inline void mw_batch_reset(struct mw_batch *batch)
{
	batch->first_ns = UINT64_MAX;
	batch->last_ns = 0;
	batch->bytes = 0;
	batch->count = 0;
	batch->written = 0;
}

/* The room of a batch whose first record has @size bytes. */
static inline uint32_t mw_batch_room(uint32_t capacity, uint32_t size)
{
	return capacity > size ? capacity : size;
}

/* The memory that a batch takes. */
static inline size_t mw_batch_memory(uint32_t room)
{
	return sizeof(struct mw_batch) + room;
}

/* An empty batch, or NULL. Caller frees with free(). */
static inline struct mw_batch *mw_batch_new(uint32_t capacity, uint32_t room)
{
	struct mw_batch *batch = malloc(mw_batch_memory(room));

	if (batch) {
		batch->capacity = capacity;
		batch->room = room;
		mw_batch_reset(batch);
	}
	return batch;
}

/*
 * Copies a record to the end, for which there is room. Its size is a multiple of 8 and seldom above
 * 80, and calling memcpy() takes longer than copying so few bytes.
 */
static inline void mw_batch_copy(struct mw_batch *batch,
				 const struct memwatch_record_header *record)
{
	const uint8_t *from = (const uint8_t *)record;
	uint8_t *to = batch->records + batch->bytes;
	size_t size = record->size, i = 0;

	for (; i + 32 <= size; i += 32)
		memcpy(to + i, from + i, 32);
	for (; i < size; i += 8)
		memcpy(to + i, from + i, 8);
	batch->bytes += record->size;
	batch->count++;
}

/*
 * Adds a record behind others. Returns false if there is no room, if the records would span
 * @span_ns, or if it is not newer than the first one: then mw_batch_add() decides.
 */
static inline bool mw_batch_append(struct mw_batch *batch,
				   const struct memwatch_record_header *record, uint64_t span_ns)
{
	if (!batch->bytes || batch->bytes + record->size > batch->capacity ||
	    record->time_ns - batch->first_ns >= span_ns)
		return false;
	if (record->time_ns > batch->last_ns)
		batch->last_ns = record->time_ns;
	mw_batch_copy(batch, record);
	return true;
}

/*
 * Adds a record. Returns false if there is no room, or if the records would span @span_ns. An empty
 * batch takes any record that is not larger than its room.
 */
static inline bool mw_batch_add(struct mw_batch *batch, const struct memwatch_record_header *record,
				uint64_t span_ns)
{
	uint64_t first = record->time_ns < batch->first_ns ? record->time_ns : batch->first_ns;
	uint64_t last = record->time_ns > batch->last_ns ? record->time_ns : batch->last_ns;

	if (batch->bytes &&
	    (batch->bytes + record->size > batch->capacity || last - first >= span_ns))
		return false;
	batch->first_ns = first;
	batch->last_ns = last;
	mw_batch_copy(batch, record);
	return true;
}

#endif /* MW_BATCH_H */
