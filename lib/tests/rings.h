/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The writer's side of a ring in memory. It does what the kernel does, and tests can also
 * make it write something invalid.
 */
#ifndef MW_TESTS_RINGS_H
#define MW_TESTS_RINGS_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "merge/merge.h"

struct writer {
	uint64_t head;
	uint64_t tail;
	uint8_t *data;
	size_t size;
	uint64_t lost; /* calls that failed since the last PERF_RECORD_LOST */
	struct mw_ring ring;
};

static inline void writer_init(struct writer *writer, size_t size)
{
	memset(writer, 0, sizeof(*writer));
	writer->size = size;
	writer->data = calloc(1, size);
	mw_ring_init(&writer->ring, &writer->head, &writer->tail, writer->data, size);
}

static inline void writer_free(struct writer *writer)
{
	free(writer->data);
}

static inline void writer_put(struct writer *writer, const void *from, size_t bytes)
{
	const uint8_t *at = from;

	for (size_t i = 0; i < bytes; i++)
		writer->data[(writer->head + i) & (writer->size - 1)] = at[i];
	__atomic_store_n(&writer->head, writer->head + bytes, __ATOMIC_RELEASE);
}

/* The free bytes of the ring. */
static inline size_t writer_space(const struct writer *writer)
{
	return writer->size - (size_t)(writer->head - writer->tail);
}

/*
 * Writes a batch of @records records in @size bytes as perf_event_output() does. Returns
 * false if it does not fit, which counts as one loss.
 */
static inline bool writer_batch(struct writer *writer, uint32_t records, const void *from,
				uint16_t size)
{
	size_t length = sizeof(struct mw_frame) + (size_t)size;
	struct {
		struct perf_event_header header;
		uint64_t id;
		uint64_t lost;
	} lost = { { PERF_RECORD_LOST, 0, sizeof(lost) }, 7, writer->lost };
	struct mw_frame frame = { { PERF_RECORD_SAMPLE, 0, (uint16_t)length }, size + 4U, records };

	if (writer_space(writer) < length + (writer->lost ? sizeof(lost) : 0)) {
		writer->lost++;
		return false;
	}
	if (writer->lost)
		writer_put(writer, &lost, sizeof(lost));
	writer->lost = 0;
	/* move the head once, so that a reader never sees a part of a frame */
	uint8_t whole[65600];

	memcpy(whole, &frame, sizeof(frame));
	memcpy(whole + sizeof(frame), from, size);
	writer_put(writer, whole, length);
	return true;
}

static inline bool writer_output(struct writer *writer, const void *record, uint16_t size)
{
	return writer_batch(writer, 1, record, size);
}

/* The next record that may be delivered at @now_ns, or NULL. */
static inline const struct memwatch_record_header *next_of(struct mw_merge *merge, uint64_t now_ns)
{
	const struct memwatch_record_header *header;

	if (mw_merge_next(merge, &header))
		return header;
	if (mw_merge_round(merge, now_ns) == 1 && mw_merge_next(merge, &header))
		return header;
	return NULL;
}

#endif /* MW_TESTS_RINGS_H */
