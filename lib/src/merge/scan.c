// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The first half of a round: give back space to the writers, and look at the new
 * frames of each ring. See merge.h.
 */
#include "merge/scan.h"

#include <errno.h>
#include <stdlib.h>

#include "merge/watermark.h"
#include "base/timemath.h"

/* --------------------------------------------------- giving back space */

/* Everything handed out is no longer used; what is pending still is, in place. */
static void find_tail(struct mw_source *source)
{
	const struct mw_merge_entry *entry = source->pending;
	uint64_t mask = source->ring.size - 1;
	uint64_t tail = source->scanned;
	uint32_t i = 0;

	while (i < source->nr_pending && !entry[i].words)
		i++;
	if (i < source->nr_pending) {
		uint64_t distance = (source->scanned - entry[i].place) & mask;

		/* no distance at all is a whole ring, for something is pending */
		tail -= distance ? distance : source->ring.size;
	}
	source->tail = tail;
	source->release = false;
}

/*
 * The control page of a ring is written by both sides, so no cache has it. It is
 * left alone while there is something to look at, but not so long that the writer
 * misses the space.
 */
static void exchange(struct mw_source *source)
{
	source->limit = mw_ring_head(&source->ring);
	if (source->released == source->tail)
		return;
	source->released = source->tail;
	mw_ring_release(&source->ring, source->tail);
}

/* ------------------------------------------------ looking at what is new */

static int reserve_pending(struct mw_source *source, uint32_t count)
{
	struct mw_merge_entry *pending;
	uint32_t max = source->max_pending ? source->max_pending : 64;

	while (max < count)
		max *= 2;
	if (max == source->max_pending)
		return 0;
	pending = realloc(source->pending, max * sizeof(*pending));
	if (!pending)
		return -ENOMEM;
	source->pending = pending;
	source->max_pending = max;
	return 0;
}

static inline void append(struct mw_source *source, uint64_t time_ns, uint32_t place,
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

/* A record after a loss tells when the loss was over. If there is no place, a later one does. */
static void close_gap(struct mw_source *source, uint64_t time_ns, uint16_t index)
{
	unsigned int slot;

	if (source->gaps_used == UINT64_MAX)
		return;
	if (!source->gaps)
		source->gaps = calloc(LOST_SLOTS, sizeof(*source->gaps));
	if (!source->gaps)
		return;
	slot = (unsigned int)__builtin_ctzll(~source->gaps_used);
	source->gaps_used |= 1ULL << slot;
	source->gaps[slot] = source->open;
	source->gaps[slot].begin_ns = mw_min_u64(source->open.begin_ns, time_ns);
	source->open.count = 0;
	append(source, time_ns, slot, 0, index);
}

static void note_state(struct mw_source *source, uint32_t state)
{
	source->state = state;
	source->away = state == MEMWATCH_CPU_OFFLINE || state == MEMWATCH_CPU_IDLE ||
		       state == MEMWATCH_CPU_STOPPED;
}

static void open_gap(struct mw_source *source, uint64_t count)
{
	if (!source->open.count)
		source->open.begin_ns = source->last_ns;
	source->open.count = mw_add_sat(source->open.count, count);
}

/* Takes the frame at the scanned position, @bytes long. */
static inline void take_frame(struct mw_source *source, uint16_t index, uint64_t time_ns,
			      uint32_t bytes)
{
	if (__builtin_expect(source->open.count != 0, 0))
		close_gap(source, time_ns, index);
	append(source, time_ns, (uint32_t)(source->scanned & (source->ring.size - 1)),
	       (uint16_t)(bytes / 8), index);
	source->last_ns = time_ns;
	if (time_ns > source->newest_ns)
		source->newest_ns = time_ns;
}

/* Behind this position lies what mw_merge_lost_add() told. */
static void take_told(struct mw_source *source)
{
	open_gap(source, source->told);
	source->told = 0;
	source->told_at = MW_TIME_MAX;
}

/*
 * Memory to ask for while a ring is looked at: every visit of a ring starts at
 * a place that is in the second level at best (mw_merge_run_next() asks for it), so
 * it is the ring that is visited next, as far in as this one is. That is the time
 * of one visit ahead, and spread over it.
 */
struct ahead {
	const uint8_t *data;
	uint64_t mask;
	uint64_t distance; /* of positions */
};

static struct ahead look_ahead(const struct mw_merge *merge, uint32_t index)
{
	const struct mw_source *next =
		&merge->sources[index + 1 < merge->nr_sources ? index + 1 : 0];

	return (struct ahead){ next->ring.data, next->ring.size - 1,
			       next->scanned - merge->sources[index].scanned };
}

/*
 * The start of a frame, which is what is looked at. To ask for all of it would keep
 * the CPU from asking for the starts of others: it has some ten requests under way.
 */
static inline void prefetch_ahead(const struct ahead *ahead, uint64_t pos)
{
	__builtin_prefetch(ahead->data + ((pos + ahead->distance) & ahead->mask), 0, 2);
}

/* What is no plain frame. Returns the bytes to the next position, 0 if there is none. */
static uint32_t scan_other(struct mw_merge *merge, uint16_t index)
{
	struct mw_source *source = &merge->sources[index];
	struct mw_ring_entry entry;

	switch (mw_ring_parse(&source->ring, source->scanned, source->limit, &entry)) {
	case MW_RING_RECORDS:
		if (entry.header.type == MEMWATCH_RECORD_CPU_STATE)
			note_state(source, entry.cpu_state);
		else if (mw_record_common(&entry.header))
			source->away = false;
		if (entry.header.time_ns < merge->future_ns)
			take_frame(source, index, entry.header.time_ns, entry.length);
		else
			source->malformed += entry.count;
		break;
	case MW_RING_LOST:
		open_gap(source, entry.count);
		source->lost = mw_add_sat(source->lost, entry.count);
		break;
	case MW_RING_MALFORMED:
		source->malformed++;
		break;
	case MW_RING_OTHER:
		break;
	case MW_RING_BROKEN:
		/* Where the next record starts is unknown; at head one will. */
		source->malformed++;
		return 0;
	}
	return entry.length;
}

/*
 * One tick sends what the one before it did: all but the time is the same, as a
 * rule. What was found true of the one need not be looked at again. Takes such
 * frames up to @end and at most @count, until there is another one; returns how
 * many.
 */
static uint64_t scan_alike(struct mw_merge *merge, uint16_t index, const struct ahead *ahead,
			   uint64_t end, uint64_t count)
{
	struct mw_source *source = &merge->sources[index];
	struct mw_merge_entry *first = source->pending + source->nr_pending, *entry = first;
	uint64_t size = source->like.frame.perf.size, future_ns = merge->future_ns;
	uint64_t at = source->scanned & (source->ring.size - 1), base = source->scanned - at;
	uint64_t limit = mw_min_u64(mw_min_u64(source->limit, source->told_at) - base,
				    source->ring.size);
	uint64_t last_ns = source->nr_pending ? first[-1].time_ns : 0;
	uint64_t newest_ns = source->newest_ns;
	const uint8_t *data = source->ring.data;
	bool in_order = source->in_order || !source->nr_pending;
	uint64_t a[4], b[4];

	memcpy(b, &source->like, sizeof(b));
	for (; base + at < end && entry < first + count && at + size <= limit; at += size) {
		prefetch_ahead(ahead, base + at);
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
	/* whoever ticks is there, whatever was heard of it last */
	source->away = false;
	source->in_order = in_order;
	source->newest_ns = newest_ns;
	source->last_ns = last_ns;
	source->nr_pending += (uint32_t)(entry - first);
	source->scanned = base + at;
	return (uint64_t)(entry - first);
}

/* Looks at one frame of any kind; returns the bytes to the next position, 0 if there is none. */
static uint32_t scan_one(struct mw_merge *merge, uint16_t index)
{
	struct mw_source *source = &merge->sources[index];
	struct mw_frame_start *start = &source->like;
	uint32_t length = mw_ring_parse_plain(&source->ring, source->scanned, source->limit, start);

	if (!length || start->header.time_ns >= merge->future_ns) {
		start->frame.perf.size = 0;
		return scan_other(merge, index);
	}
	source->away = false;
	take_frame(source, index, start->header.time_ns, length);
	return length;
}

/* Looks at some more frames: one at least, and those that start in the next @bytes. */
static int scan(struct mw_merge *merge, uint16_t index, uint64_t bytes)
{
	struct mw_source *source = &merge->sources[index];
	struct ahead ahead = look_ahead(merge, index);
	uint64_t end, count, alike;
	uint32_t length;

	if (mw_source_is_full(source))
		return 0;
	end = source->scanned + mw_min_u64(bytes, source->limit - source->scanned);
	count = (end - source->scanned) / sizeof(struct mw_frame_start) + 1;
	count = mw_min_u64(count, MW_MERGE_PENDING_MAX - source->nr_pending);
	/* a frame may bring a loss with it: more entries than frames */
	if (reserve_pending(source, source->nr_pending + (uint32_t)count + LOST_SLOTS))
		return -ENOMEM;

	source->release = true;
	while (count && source->scanned < end) {
		if (source->like.frame.perf.size && !source->open.count) {
			alike = scan_alike(merge, index, &ahead, end, count);
			count -= alike;
			if (alike)
				continue;
		}
		if (__builtin_expect(source->scanned >= source->told_at, 0))
			take_told(source);
		length = scan_one(merge, index);
		if (!length) {
			source->scanned = source->limit;
			break;
		}
		prefetch_ahead(&ahead, source->scanned);
		source->scanned += length;
		count--;
	}
	/* that it is empty is said of now, not of when the head was loaded */
	if (mw_source_is_empty(source))
		source->limit = mw_ring_head(&source->ring);
	return 0;
}

/*
 * Bytes of a ring that are looked at in a round: those of all rings are to be in a
 * second level of 1 MiB still when they are handed out. The more they are, the less
 * often another ring is begun.
 */
static uint64_t quantum(const struct mw_merge *merge)
{
	uint64_t share;

	if (merge->opts.quantum)
		return merge->opts.quantum;
	share = (768 << 10) / (merge->nr_sources ? merge->nr_sources : 1);
	return share < 1024 ? 1024 : share > 65536 ? 65536 : share;
}

int mw_merge_scan_all(struct mw_merge *merge)
{
	merge->quantum = quantum(merge);
	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		struct mw_source *source = &merge->sources[i];
		bool far;

		if (source->release)
			find_tail(source);
		/* one that is far ahead of the others need not run further */
		far = source->scanned - source->tail >= 4 * merge->quantum;
		if (far || mw_source_is_empty(source) ||
		    source->tail - source->released >= source->ring.size / 8)
			exchange(source);
		if (!far && !mw_source_is_empty(source) && scan(merge, (uint16_t)i, merge->quantum))
			return -ENOMEM;
	}
	return 0;
}

/* The rings that hold the watermark back and have more to look at. */
int mw_merge_scan_limiting(struct mw_merge *merge, uint64_t mark_ns)
{
	int progress = 0;

	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		struct mw_source *source = &merge->sources[i];

		if (mw_source_is_empty(source) || mw_source_is_full(source) ||
		    mw_source_frontier(merge, source) > mark_ns)
			continue;
		if (scan(merge, (uint16_t)i, merge->quantum))
			return -ENOMEM;
		progress = 1;
	}
	return progress;
}

/*
 * The rings that fill up while nothing may be delivered: looked at to the end,
 * they are pressed.
 */
int mw_merge_scan_filling(struct mw_merge *merge)
{
	int progress = 0;

	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		struct mw_source *source = &merge->sources[i];

		if (mw_source_is_empty(source) || mw_source_is_full(source) ||
		    !mw_source_fills_up(source))
			continue;
		if (scan(merge, (uint16_t)i, source->ring.size))
			return -ENOMEM;
		progress = 1;
	}
	return progress;
}

/* At the end, losses that no record follows end now. */
int mw_merge_close_gaps(struct mw_merge *merge)
{
	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		struct mw_source *source = &merge->sources[i];
		uint64_t end = merge->finish_ns;

		if (!mw_source_is_empty(source))
			continue;
		if (source->told)
			take_told(source);
		if (!source->open.count)
			continue;
		if (end == MW_TIME_MAX)
			end = source->newest_ns;
		end = mw_max_u64(end, source->open.begin_ns);
		if (reserve_pending(source, source->nr_pending + 1))
			return -ENOMEM;
		close_gap(source, end, (uint16_t)i);
		source->newest_ns = mw_max_u64(source->newest_ns, end);
	}
	return 0;
}
