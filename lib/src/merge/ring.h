/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader's side of one perf ring buffer: two positions, a buffer, and the layout
 * of the frames in it. It does not know about perf events, files or time order, so
 * that tests and benchmarks can make rings of their own.
 *
 * A frame starts at a multiple of 8 in the ring:
 *
 *	struct perf_event_header	type PERF_RECORD_SAMPLE, size of the frame
 *	__u32 raw_size			size of what follows, padding included
 *	__u32 records			from here on struct mw_relay_batch:
 *	records of linux/memwatch.h	the number of records, then the records
 *
 * All records of a frame have the same time. They are aligned to 8 bytes, so the
 * records of a frame that does not wrap can be read in place.
 */
#ifndef MW_MERGE_RING_H
#define MW_MERGE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <linux/memwatch.h>
#include <linux/perf_event.h>

#include "base/record.h"

/**
 * struct mw_ring - one ring
 * @head: position of the writer; stored with release semantics by the writer
 * @tail: position of the reader; stored with release semantics by the reader. The
 *	writer may reuse the space before it.
 * @data: the buffer
 * @size: size of the buffer, a power of two from 8 bytes to 2 GiB
 *
 * Positions only grow; the offset in the buffer is position % size.
 */
struct mw_ring {
	uint64_t *head;
	uint64_t *tail;
	const uint8_t *data;
	uint64_t size;
};

/* What precedes the records of a frame. */
struct mw_frame {
	struct perf_event_header perf;
	uint32_t raw_size;
	uint32_t records;
};

/* The start of a frame, up to the header of the first record. */
struct mw_frame_start {
	struct mw_frame frame;
	struct memwatch_record_header header;
};

/* Bytes of @raw_size that precede the first record: the number of records. */
#define MW_FRAME_COUNT_BYTES sizeof(uint32_t)

/*
 * Initialises @ring from the mapping of a perf event: one control page, then
 * @data_size bytes. Returns 0, or -EINVAL if @data_size is not a power of two.
 */
int mw_ring_init_perf(struct mw_ring *ring, void *base, size_t page_size, size_t data_size);

/* Initialises @ring from its parts; @head, @tail and @data are aligned to 8 bytes. */
int mw_ring_init(struct mw_ring *ring, uint64_t *head, uint64_t *tail, const void *data,
		 size_t size);

/* The acquire pairs with the writer's release of data_head: frames before it are complete. */
static inline uint64_t mw_ring_head(const struct mw_ring *ring)
{
	return __atomic_load_n(ring->head, __ATOMIC_ACQUIRE);
}

static inline uint64_t mw_ring_tail(const struct mw_ring *ring)
{
	return __atomic_load_n(ring->tail, __ATOMIC_RELAXED);
}

/* The release pairs with the writer's acquire of data_tail: our reads before it are done. */
static inline void mw_ring_release(struct mw_ring *ring, uint64_t tail)
{
	__atomic_store_n(ring->tail, tail, __ATOMIC_RELEASE);
}

/* Copies @len bytes from position @pos; they may wrap around the end of the buffer. */
static inline void mw_ring_copy(const struct mw_ring *ring, uint64_t pos, void *to, size_t len)
{
	uint64_t at = pos & (ring->size - 1);
	uint64_t first = ring->size - at;

	if (__builtin_expect(len <= first, 1)) {
		memcpy(to, ring->data + at, len);
		return;
	}
	memcpy(to, ring->data + at, first);
	memcpy((uint8_t *)to + first, ring->data, len - first);
}

/* What mw_ring_parse() found at a position. */
enum mw_ring_item {
	MW_RING_RECORDS,   /* a frame of the relay, described by &struct mw_ring_entry */
	MW_RING_LOST,	   /* the kernel lost @count records here */
	MW_RING_MALFORMED, /* an invalid frame; skip @length */
	MW_RING_OTHER,	   /* another record of perf; skip @length */
	MW_RING_BROKEN,	   /* no valid length: the next frame cannot be found */
};

/**
 * struct mw_ring_entry - what was found at a position
 * @header: copy of the header of the first record
 * @count: number of records, or of lost records
 * @length: bytes to the next position
 * @cpu_state: &enum memwatch_cpu_state, if the record is a CPU state
 */
struct mw_ring_entry {
	struct memwatch_record_header header;
	uint64_t count;
	uint32_t length;
	uint32_t cpu_state;
};

/*
 * Parses what is at position @pos, which is before @head. Trusts nothing but @head.
 * Every item except MW_RING_BROKEN has a @length > 0 that does not exceed @head.
 */
enum mw_ring_item mw_ring_parse(const struct mw_ring *ring, uint64_t pos, uint64_t head,
				struct mw_ring_entry *entry);

/*
 * The common case of mw_ring_parse(), inline: a frame that does not wrap and starts
 * with a record that mw_record_common() accepts. Returns the bytes to the next
 * position, or 0 for every other case. mw_ring_parse() accepts all that this accepts.
 */
static inline uint32_t mw_ring_parse_plain(const struct mw_ring *ring, uint64_t pos, uint64_t head,
					   struct mw_frame_start *start)
{
	uint64_t at = pos & (ring->size - 1);
	uint64_t available = head - pos;
	const struct mw_frame *frame = &start->frame;
	const struct memwatch_record_header *header = &start->header;
	uint32_t bytes;

	if (available > ring->size - at)
		available = ring->size - at;
	if (available < sizeof(*start) || pos % 8)
		return 0;
	memcpy(start, ring->data + at, sizeof(*start));
	bytes = frame->perf.size - (uint32_t)sizeof(*frame);
	if (frame->perf.type != PERF_RECORD_SAMPLE || frame->perf.size % 8 ||
	    frame->perf.size > available || frame->perf.size < sizeof(*start) ||
	    frame->raw_size != bytes + MW_FRAME_COUNT_BYTES || header->size > bytes ||
	    header->size % 8 || header->flags || !mw_record_common(header) ||
	    frame->records - 1 >= bytes / sizeof(*header))
		return 0;
	return frame->perf.size;
}

#endif /* MW_MERGE_RING_H */
