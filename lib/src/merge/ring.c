// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Parsing of a ring. No length found in the ring is trusted before it has been
 * compared with the head of the ring.
 */
#include "merge/ring.h"

#include <errno.h>

int mw_ring_init(struct mw_ring *ring, uint64_t *head, uint64_t *tail, const void *data,
		 size_t size)
{
	/* struct mw_merge_entry keeps offsets into the buffer in 32 bits */
	if (size < 8 || size > (1ULL << 31) || (size & (size - 1)))
		return -EINVAL;
	*ring = (struct mw_ring){ .head = head, .tail = tail, .data = data, .size = size };
	return 0;
}

int mw_ring_init_perf(struct mw_ring *ring, void *base, size_t page_size, size_t data_size)
{
	struct perf_event_mmap_page *page = base;

	return mw_ring_init(ring, (uint64_t *)&page->data_head, (uint64_t *)&page->data_tail,
			    (uint8_t *)base + page_size, data_size);
}

static enum mw_ring_item ring_parse_frame(const struct mw_ring *ring, uint64_t pos,
					  struct mw_ring_entry *entry)
{
	struct mw_frame_start start;
	uint32_t bytes;

	if (entry->length < sizeof(start))
		return MW_RING_MALFORMED;
	mw_ring_copy(ring, pos, &start, sizeof(start));
	bytes = start.frame.raw_size - (uint32_t)MW_FRAME_COUNT_BYTES;
	if (start.frame.raw_size < MW_FRAME_COUNT_BYTES + sizeof(start.header) ||
	    bytes > entry->length - sizeof(start.frame) || !start.frame.records ||
	    start.frame.records > bytes / sizeof(start.header))
		return MW_RING_MALFORMED;

	entry->header = start.header;
	entry->count = start.frame.records;
	/* Only the library makes records of losses, and only the library sets flags. */
	if (!mw_record_valid(&entry->header, bytes) || entry->header.flags ||
	    entry->header.type == MEMWATCH_RECORD_LOST ||
	    (entry->count > 1 && !mw_record_common(&entry->header)))
		return MW_RING_MALFORMED;

	if (__builtin_expect(entry->header.type == MEMWATCH_RECORD_CPU_STATE, 0))
		mw_ring_copy(ring,
			     pos + sizeof(start.frame) +
				     offsetof(struct memwatch_record_cpu, state),
			     &entry->cpu_state, sizeof(entry->cpu_state));
	return MW_RING_RECORDS;
}

static enum mw_ring_item ring_parse_lost(const struct mw_ring *ring, uint64_t pos,
					 struct mw_ring_entry *entry)
{
	struct {
		struct perf_event_header header;
		uint64_t id;
		uint64_t lost;
	} record;

	if (entry->length < sizeof(record))
		return MW_RING_MALFORMED;
	mw_ring_copy(ring, pos, &record, sizeof(record));
	entry->count = record.lost;
	return MW_RING_LOST;
}

enum mw_ring_item mw_ring_parse(const struct mw_ring *ring, uint64_t pos, uint64_t head,
				struct mw_ring_entry *entry)
{
	uint64_t available = head - pos;
	struct perf_event_header header;

	/* a head more than the size of the ring before the tail is invalid */
	if (available < sizeof(header) || available > ring->size || pos % 8)
		return MW_RING_BROKEN;
	memcpy(&header, ring->data + (pos & (ring->size - 1)), sizeof(header));
	if (header.size < sizeof(header) || header.size % 8 || header.size > available)
		return MW_RING_BROKEN;

	entry->length = header.size;
	switch (header.type) {
	case PERF_RECORD_SAMPLE:
		return ring_parse_frame(ring, pos, entry);
	case PERF_RECORD_LOST:
		return ring_parse_lost(ring, pos, entry);
	default:
		return MW_RING_OTHER;
	}
}
