/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * One ring: the consumer's side of a perf mmap area, as far as the layout goes.
 * It knows two positions, a buffer and how a record lies in it, and nothing of
 * perf events, files or time order; so tests and benchmarks make their own.
 *
 * A frame in the ring, always at a multiple of 8:
 *
 *	struct perf_event_header	type PERF_RECORD_SAMPLE, size of the whole
 *	__u32 raw_size			of what follows, padding included
 *	__u32 records			what the relay sends: struct mw_relay_parcel
 *	the records of linux/memwatch.h, all of one time
 *
 * So the records are aligned, and those of a frame that does not wrap can be
 * read where they lie.
 */
#ifndef MW_RING_H
#define MW_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <linux/memwatch.h>
#include <linux/perf_event.h>

#include "base/record.h"

/**
 * struct mw_ring - one ring
 * @head: where the writer is, written by it with release, read with acquire
 * @tail: where the reader is, written by us with release: the writer may reuse
 *	what lies before it
 * @data: the buffer
 * @size: of it, a power of two, at least 8; up to 2 GiB
 *
 * Positions only grow; the place in the buffer is position % size.
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

/* What a frame and the first record start with. */
struct mw_frame_start {
	struct mw_frame frame;
	struct memwatch_record_header header;
};

/* Of @raw_size this much is no record. */
#define MW_FRAME_NUMBER sizeof(uint32_t)

/*
 * A perf mmap area: one control page, then @data_size bytes. Returns -EINVAL
 * if @data_size is not a power of two.
 */
int mw_ring_init_perf(struct mw_ring *ring, void *base, size_t page_size, size_t data_size);

/* Parts given one by one; @head, @tail and @data 8-byte aligned. */
int mw_ring_init(struct mw_ring *ring, uint64_t *head, uint64_t *tail, const void *data,
		 size_t size);

/* Pairs with the writer's release of data_head: what lies before it is written. */
static inline uint64_t mw_ring_head(const struct mw_ring *ring)
{
	return __atomic_load_n(ring->head, __ATOMIC_ACQUIRE);
}

static inline uint64_t mw_ring_tail(const struct mw_ring *ring)
{
	return __atomic_load_n(ring->tail, __ATOMIC_RELAXED);
}

/* Pairs with the writer's acquire of data_tail: what lies before it has been read. */
static inline void mw_ring_release(struct mw_ring *ring, uint64_t tail)
{
	__atomic_store_n(ring->tail, tail, __ATOMIC_RELEASE);
}

/* Copies @len bytes from position @pos; they may wrap. */
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
	MW_RING_RECORDS,   /* ours; &struct mw_ring_entry is valid */
	MW_RING_LOST,	   /* the kernel lost @count records here */
	MW_RING_MALFORMED, /* ours, but makes no sense; skip @length */
	MW_RING_OTHER,	   /* of no interest; skip @length */
	MW_RING_BROKEN,	   /* not even a length: the rest of the ring is lost */
};

/**
 * struct mw_ring_entry - what lies at a position
 * @header: of the first record, copied
 * @count: of records, or of PERF_RECORD_LOST
 * @length: bytes to the next position
 * @cpu_state: &enum memwatch_cpu_state, if it is such a record
 */
struct mw_ring_entry {
	struct memwatch_record_header header;
	uint64_t count;
	uint32_t length;
	uint32_t cpu_state;
};

/*
 * Looks at position @pos, before @head. Trusts nothing but @head. Every item
 * but MW_RING_BROKEN has a @length > 0 that does not pass @head.
 */
enum mw_ring_item mw_ring_parse(const struct mw_ring *ring, uint64_t pos, uint64_t head,
				struct mw_ring_entry *entry);

/*
 * The common case of mw_ring_parse(), inline: a frame that does not wrap, of
 * common records as far as the first one tells. Returns the bytes to the next
 * position, or 0: this is another case. What it accepts, mw_ring_parse() accepts.
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
	    frame->raw_size != bytes + MW_FRAME_NUMBER || header->size > bytes ||
	    header->size % 8 || header->flags || !mw_record_common(header) ||
	    frame->records - 1 >= bytes / sizeof(*header))
		return 0;
	return frame->perf.size;
}

#endif /* MW_RING_H */
