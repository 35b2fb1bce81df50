// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The first half of a round: give space back to the writers and scan the new frames
 * of each ring. See merge.h.
 */
#include "merge/scan.h"

#include <errno.h>
#include <stdlib.h>

#include "merge/watermark.h"
#include "base/array.h"
#include "base/timemath.h"

/* ------------------------------------------------- space for the writer */

/* Frames that were delivered are not used any more; pending frames are used in place. */
static void source_find_tail(struct mw_source *source)
{
	const struct mw_merge_entry *entry = source->pending;
	uint64_t mask = source->ring.size - 1;
	uint64_t tail = source->scanned;
	uint32_t i = 0;

	while (i < source->nr_pending && !entry[i].words)
		i++;
	if (i < source->nr_pending) {
		uint64_t distance = (source->scanned - entry[i].place) & mask;

		/* a frame is pending, so distance 0 means the whole ring */
		tail -= distance ? distance : source->ring.size;
	}
	source->tail = tail;
	source->tail_stale = false;
}

/*
 * Loads the writer's position and stores ours. Both sides write the control page of
 * a ring, so each access is likely to be a cache miss: call this only when the ring
 * is empty or the writer needs the space.
 */
static void source_exchange_positions(struct mw_source *source)
{
	source->limit = mw_ring_head(&source->ring);
	if (source->released == source->tail)
		return;
	source->released = source->tail;
	mw_ring_release(&source->ring, source->tail);
}

/* ------------------------------------------------------ pending entries */

static inline void source_append(struct mw_source *source, uint64_t time_ns, uint32_t place,
				 uint16_t words, uint16_t index)
{
	uint32_t n = source->nr_pending;

	if (n == 0)
		source->in_order = true;
	else if (time_ns < source->pending[n - 1].time_ns)
		source->in_order = false;
	source->pending[n] = (struct mw_merge_entry){ time_ns, place, words, index };
	source->nr_pending = n + 1;
}

/* The earliest time that is known, at most @time_ns: a loss before any record begins there. */
static uint64_t merge_find_start(const struct mw_merge *merge, uint64_t time_ns)
{
	uint64_t start = merge->first_ns ? mw_min_u64(merge->first_ns, time_ns) : time_ns;

	for (uint32_t i = 0; i < merge->nr_sources; i++)
		if (merge->sources[i].nr_pending)
			start = mw_min_u64(start, merge->sources[i].pending[0].time_ns);
	return start;
}

/*
 * A loss ends with the next record of its ring; its place in the stream is its beginning. If no
 * gap is free, the loss stays open and a later record ends it.
 */
static void source_close_gap(const struct mw_merge *merge, uint16_t index, uint64_t time_ns)
{
	struct mw_source *source = &merge->sources[index];
	struct mw_gap *gap;
	unsigned int slot;

	if (source->gaps_used == UINT64_MAX)
		return;
	if (!source->gaps)
		source->gaps = calloc(MW_GAPS_MAX, sizeof(*source->gaps));
	if (!source->gaps)
		return;
	slot = (unsigned int)__builtin_ctzll(~source->gaps_used);
	source->gaps_used |= 1ULL << slot;
	gap = &source->gaps[slot];
	*gap = source->open;
	gap->begin_ns = mw_min_u64(gap->begin_ns, time_ns);
	if (!gap->begin_ns)
		gap->begin_ns = merge_find_start(merge, time_ns);
	gap->end_ns = mw_max_u64(gap->end_ns, time_ns);
	source->open.count = 0;
	source_append(source, gap->begin_ns, slot, 0, index);
}

static void source_set_state(struct mw_source *source, uint32_t state)
{
	source->state = state;
	source->away = state == MEMWATCH_CPU_OFFLINE || state == MEMWATCH_CPU_IDLE ||
		       state == MEMWATCH_CPU_STOPPED;
}

static void source_open_gap(struct mw_source *source, uint64_t count)
{
	if (!source->open.count)
		source->open = (struct mw_gap){ .begin_ns = source->complete_ns };
	source->open.count = mw_add_sat(source->open.count, count);
}

/* Appends the frame at the scanned position, which is @bytes long and begins with @header. */
static inline void source_append_frame(struct mw_merge *merge, uint16_t index,
				       const struct memwatch_record_header *header, uint32_t bytes)
{
	struct mw_source *source = &merge->sources[index];
	uint64_t time_ns = header->time_ns;

	if (__builtin_expect(source->open.count != 0, 0))
		source_close_gap(merge, index, time_ns);
	source_append(source, time_ns, (uint32_t)(source->scanned & (source->ring.size - 1)),
		      (uint16_t)(bytes / 8), index);
	if (mw_record_completes(header))
		source->complete_ns = time_ns;
	if (time_ns > source->newest_ns)
		source->newest_ns = time_ns;
}

/* The position at which mw_merge_lost_add() reported a loss has been reached. */
static void source_open_reported_gap(struct mw_source *source)
{
	source_open_gap(source, source->reported);
	source->open.end_ns = mw_max_u64(source->open.end_ns, source->reported_ns);
	source->reported = 0;
	source->reported_at = MW_TIME_MAX;
	source->reported_ns = 0;
}

/*
 * Prefetch the next ring while this one is scanned, the first cache line of each frame
 * only: a CPU has about ten line-fill buffers.
 */
struct prefetch {
	const uint8_t *data;
	uint64_t mask;
	uint64_t distance; /* from a position in this ring to one in the next ring */
};

static struct prefetch scan_find_prefetch(const struct mw_merge *merge, uint32_t index)
{
	const struct mw_source *next =
		&merge->sources[index + 1 < merge->nr_sources ? index + 1 : 0];

	return (struct prefetch){ next->ring.data, next->ring.size - 1,
				  next->scanned - merge->sources[index].scanned };
}

/* @pos: a position in the ring that is being scanned. */
static inline void prefetch_frame(const struct prefetch *prefetch, uint64_t pos)
{
	__builtin_prefetch(prefetch->data + ((pos + prefetch->distance) & prefetch->mask), 0, 2);
}

/* Scans a frame of any kind. Returns the bytes to the next position, or 0 if it is unknown. */
static uint32_t scan_any_frame(struct mw_merge *merge, uint16_t index)
{
	struct mw_source *source = &merge->sources[index];
	struct mw_ring_entry entry;

	switch (mw_ring_parse(&source->ring, source->scanned, source->limit, &entry)) {
	case MW_RING_RECORDS:
		if (entry.header.type == MEMWATCH_RECORD_CPU_STATE)
			source_set_state(source, entry.cpu_state);
		else if (mw_record_common(&entry.header))
			source->away = false;
		if (entry.header.time_ns < merge->future_ns)
			source_append_frame(merge, index, &entry.header, entry.length);
		else
			source->malformed += entry.count;
		break;
	case MW_RING_LOST:
		source_open_gap(source, entry.count);
		source->lost = mw_add_sat(source->lost, entry.count);
		break;
	case MW_RING_MALFORMED:
		source->malformed++;
		break;
	case MW_RING_OTHER:
		break;
	case MW_RING_BROKEN:
		/* the next known start of a frame is the writer's position */
		source->malformed++;
		return 0;
	}
	return entry.length;
}

/*
 * The frame of a tick usually differs from the previous one in its time only, so the
 * checks of @model need not be repeated. Scans such frames until another kind of frame
 * is found, up to position @end and at most @count. Returns how many were scanned.
 */
static uint64_t scan_similar_frames(struct mw_merge *merge, uint16_t index,
				    const struct prefetch *prefetch, uint64_t end, uint64_t count)
{
	struct mw_source *source = &merge->sources[index];
	struct mw_merge_entry *first = source->pending + source->nr_pending, *entry = first;
	uint64_t size = source->model.frame.perf.size, future_ns = merge->future_ns;
	uint64_t at = source->scanned & (source->ring.size - 1), base = source->scanned - at;
	uint64_t limit = mw_min_u64(mw_min_u64(source->limit, source->reported_at) - base,
				    source->ring.size);
	uint64_t last_ns = source->nr_pending ? first[-1].time_ns : 0;
	uint64_t newest_ns = source->newest_ns;
	const uint8_t *data = source->ring.data;
	bool in_order = source->in_order || !source->nr_pending;
	uint64_t a[4], b[4];

	memcpy(b, &source->model, sizeof(b));
	for (; base + at < end && entry < first + count && at + size <= limit; at += size) {
		prefetch_frame(prefetch, base + at);
		memcpy(a, data + at, sizeof(a));
		if ((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[3] ^ b[3]) || a[2] >= future_ns)
			break;
		in_order &= a[2] >= last_ns;
		last_ns = a[2];
		newest_ns = mw_max_u64(newest_ns, last_ns);
		*entry++ = (struct mw_merge_entry){ last_ns, (uint32_t)at, (uint16_t)(size / 8),
						    index };
	}
	if (entry == first)
		return 0;
	/* a CPU that ticks is not away, even if its last CPU state said so */
	source->away = false;
	source->in_order = in_order;
	source->newest_ns = newest_ns;
	source->complete_ns = last_ns;
	source->nr_pending += (uint32_t)(entry - first);
	source->scanned = base + at;
	return (uint64_t)(entry - first);
}

/* Scans one frame, the common kind first. Returns as scan_any_frame(). */
static uint32_t scan_frame(struct mw_merge *merge, uint16_t index)
{
	struct mw_source *source = &merge->sources[index];
	struct mw_frame_start *start = &source->model;
	uint32_t length = mw_ring_parse_plain(&source->ring, source->scanned, source->limit, start);

	if (!length || start->header.time_ns >= merge->future_ns) {
		start->frame.perf.size = 0;
		return scan_any_frame(merge, index);
	}
	source->away = false;
	source_append_frame(merge, index, &start->header, length);
	return length;
}

/* Scans the frames that start in the next @bytes of the ring, at least one. 0 or -ENOMEM. */
static int scan_ring(struct mw_merge *merge, uint16_t index, uint64_t bytes)
{
	struct mw_source *source = &merge->sources[index];
	struct prefetch prefetch = scan_find_prefetch(merge, index);
	uint64_t end, count, similar;
	uint32_t length;

	if (mw_source_is_full(source))
		return 0;
	end = source->scanned + mw_min_u64(bytes, source->limit - source->scanned);
	count = (end - source->scanned) / sizeof(struct mw_frame_start) + 1;
	count = mw_min_u64(count, MW_MERGE_PENDING_MAX - source->nr_pending);
	/* each gap needs an entry of its own */
	if (mw_array_reserve(source->pending, source->max_pending,
			     source->nr_pending + (uint32_t)count + MW_GAPS_MAX))
		return -ENOMEM;

	source->tail_stale = true;
	while (count && source->scanned < end) {
		if (source->model.frame.perf.size && !source->open.count) {
			similar = scan_similar_frames(merge, index, &prefetch, end, count);
			count -= similar;
			if (similar)
				continue;
		}
		if (__builtin_expect(source->scanned >= source->reported_at, 0))
			source_open_reported_gap(source);
		length = scan_frame(merge, index);
		if (!length) {
			source->scanned = source->limit;
			break;
		}
		prefetch_frame(&prefetch, source->scanned);
		source->scanned += length;
		count--;
	}
	/* more may have been written since the head was loaded */
	if (mw_source_is_empty(source))
		source->limit = mw_ring_head(&source->ring);
	return 0;
}

/*
 * Bytes of a ring to scan in a round: as much as possible, because each change to
 * another ring costs cache misses; but what is scanned of all rings should still be
 * in a level-2 cache of 1 MiB when it is delivered.
 */
static uint64_t choose_quantum(const struct mw_merge *merge)
{
	uint64_t share;

	if (merge->opts.quantum)
		return merge->opts.quantum;
	share = (768 << 10) / (merge->nr_sources ? merge->nr_sources : 1);
	return share < 1024 ? 1024 : share > 65536 ? 65536 : share;
}

int mw_merge_scan_all(struct mw_merge *merge)
{
	merge->quantum = choose_quantum(merge);
	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		struct mw_source *source = &merge->sources[i];
		bool far;

		if (source->tail_stale)
			source_find_tail(source);
		/* do not scan a ring that is far ahead of the others any further */
		far = source->scanned - source->tail >= 4 * merge->quantum;
		if (far || mw_source_is_empty(source) ||
		    source->tail - source->released >= source->ring.size / 8)
			source_exchange_positions(source);
		if (!far && !mw_source_is_empty(source) &&
		    scan_ring(merge, (uint16_t)i, merge->quantum))
			return -ENOMEM;
	}
	return 0;
}

int mw_merge_scan_limiting(struct mw_merge *merge, uint64_t mark_ns)
{
	int progress = 0;

	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		struct mw_source *source = &merge->sources[i];

		if (mw_source_is_empty(source) || mw_source_is_full(source) ||
		    mw_source_frontier(merge, source) > mark_ns)
			continue;
		if (scan_ring(merge, (uint16_t)i, merge->quantum))
			return -ENOMEM;
		progress = 1;
	}
	return progress;
}

int mw_merge_scan_filling(struct mw_merge *merge)
{
	int progress = 0;

	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		struct mw_source *source = &merge->sources[i];

		if (mw_source_is_empty(source) || mw_source_is_full(source) ||
		    !mw_source_fills_up(source))
			continue;
		if (scan_ring(merge, (uint16_t)i, source->ring.size))
			return -ENOMEM;
		progress = 1;
	}
	return progress;
}

int mw_merge_close_gaps(struct mw_merge *merge)
{
	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		struct mw_source *source = &merge->sources[i];
		uint64_t end = merge->finish_ns;

		if (!mw_source_is_empty(source))
			continue;
		if (source->reported)
			source_open_reported_gap(source);
		if (!source->open.count)
			continue;
		if (end == MW_TIME_MAX)
			end = source->newest_ns;
		end = mw_max_u64(end, source->open.begin_ns);
		if (mw_array_reserve(source->pending, source->max_pending, source->nr_pending + 1))
			return -ENOMEM;
		source_close_gap(merge, (uint16_t)i, end);
		source->newest_ns = mw_max_u64(source->newest_ns, end);
	}
	return 0;
}
