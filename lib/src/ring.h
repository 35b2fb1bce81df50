/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * One ring: the consumer's side of a perf mmap area, as far as the layout goes.
 * It knows two positions, a buffer and how a record lies in it, and nothing of
 * perf events, files or time order; so tests and benchmarks make their own.
 *
 * A record in the ring, always at a multiple of 8:
 *
 *	struct perf_event_header	type PERF_RECORD_SAMPLE, size of the whole
 *	[__u64 time]			if the event samples PERF_SAMPLE_TIME
 *	__u32 raw_size
 *	the record of linux/memwatch.h	and up to 7 bytes of padding
 *
 * So the record itself is 4 bytes off and must be copied out before anybody
 * looks at it as a structure.
 */
#ifndef MW_RING_H
#define MW_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <linux/memwatch.h>
#include <linux/perf_event.h>

/**
 * struct mw_ring - one ring
 * @head: where the writer is, written by it with release, read with acquire
 * @tail: where the reader is, written by us with release: the writer may reuse
 *	what lies before it
 * @data: the buffer
 * @size: of it, a power of two, at least 8; up to 2 GiB
 * @sampled_time: there is a time before raw_size
 *
 * Positions only grow; the place in the buffer is position % size.
 */
struct mw_ring {
	uint64_t *head;
	uint64_t *tail;
	const uint8_t *data;
	uint64_t size;
	bool sampled_time;
};

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

/* From the start of a frame, whatever it is, to the record in it. */
static inline unsigned int mw_ring_before(const struct mw_ring *ring)
{
	return sizeof(struct perf_event_header) + (ring->sampled_time ? 8 : 0) + sizeof(uint32_t);
}

/* What mw_ring_parse() found at a position. */
enum mw_ring_item {
	MW_RING_RECORD,	   /* one of ours; &struct mw_ring_entry is valid */
	MW_RING_LOST,	   /* the kernel lost @count records here */
	MW_RING_MALFORMED, /* a record of ours that makes no sense; skip @length */
	MW_RING_OTHER,	   /* of no interest; skip @length */
	MW_RING_BROKEN,	   /* not even a length: the rest of the ring is lost */
};

/**
 * struct mw_ring_entry - what lies at a position
 * @header: of the record, copied
 * @payload: position of the record of linux/memwatch.h
 * @length: bytes to the next position
 * @count: of PERF_RECORD_LOST
 * @cpu_state: &enum memwatch_cpu_state, if it is such a record
 */
struct mw_ring_entry {
	struct memwatch_record_header header;
	uint64_t payload;
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

/* Smallest valid size of a record of @type; that of the header if not known. */
unsigned int mw_record_size_min(unsigned int type);

/*
 * The common case of mw_ring_parse(), inline: a whole record that does not wrap
 * and means nothing to the ring itself. Returns the bytes to the next position,
 * or 0: this is another case. What it accepts, mw_ring_parse() accepts.
 */
static inline uint32_t mw_ring_parse_plain(const struct mw_ring *ring, uint64_t pos, uint64_t head,
					   struct memwatch_record_header *header)
{
	uint64_t at = pos & (ring->size - 1);
	uint64_t available = head - pos;
	const uint8_t *data = ring->data + at;
	struct perf_event_header perf;
	uint32_t raw_size;

	if (available > ring->size - at)
		available = ring->size - at;
	if (available < sizeof(perf) + sizeof(raw_size) + sizeof(*header) || pos % 8 ||
	    ring->sampled_time)
		return 0;
	memcpy(&perf, data, sizeof(perf));
	memcpy(&raw_size, data + sizeof(perf), sizeof(raw_size));
	memcpy(header, data + sizeof(perf) + sizeof(raw_size), sizeof(*header));
	if (perf.type != PERF_RECORD_SAMPLE || perf.size % 8 || perf.size > available ||
	    perf.size < sizeof(perf) + sizeof(raw_size) + sizeof(*header) ||
	    raw_size > perf.size - sizeof(perf) - sizeof(raw_size) || header->size > raw_size ||
	    header->size % 8)
		return 0;
	switch (header->type) {
	case MEMWATCH_RECORD_SAMPLE:
		return header->size >= sizeof(struct memwatch_record_sample) ? perf.size : 0;
	case MEMWATCH_RECORD_TICK:
		return header->size >= sizeof(struct memwatch_record_tick) ? perf.size : 0;
	default:
		/* types that nobody knows yet; the others are rare */
		return header->type > MEMWATCH_RECORD_GROWTH && header->size >= sizeof(*header) ?
			       perf.size : 0;
	}
}

/* Is this a record that fits into @available bytes? */
bool mw_record_valid(const struct memwatch_record_header *header, size_t available);

#endif /* MW_RING_H */
