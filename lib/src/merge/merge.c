// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The rings of a merge, and its rounds: scan what is new, find the watermark, collect
 * and sort the frames that are older. See merge.h.
 */
#include "merge/merge.h"

#include <errno.h>
#include <stdlib.h>

#include "merge/scan.h"
#include "merge/watermark.h"
#include "base/array.h"
#include "base/timemath.h"

int mw_merge_new(const struct mw_merge_opts *opts, struct mw_merge **ret)
{
	struct mw_merge *merge = aligned_alloc(64, sizeof(*merge));

	if (!merge)
		return -ENOMEM;
	memset(merge, 0, offsetof(struct mw_merge, frame));
	merge->opts = *opts;
	*ret = merge;
	return 0;
}

void mw_merge_set_silent(struct mw_merge *merge, uint64_t silent_ns)
{
	merge->opts.silent_ns = silent_ns;
}

struct mw_merge *mw_merge_free(struct mw_merge *merge)
{
	if (!merge)
		return NULL;
	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		free(merge->sources[i].pending);
		free(merge->sources[i].gaps);
	}
	free(merge->sources);
	free(merge->outputs);
	free(merge->by_cpu);
	free(merge->ready);
	free(merge->scratch);
	free(merge);
	return NULL;
}

/* The three arrays have one capacity, which grows when the last of them has grown. */
static int merge_reserve_sources(struct mw_merge *merge, uint32_t want)
{
	uint32_t sources = merge->max_sources, outputs = sources, by_cpu = sources;

	if (mw_array_reserve(merge->sources, sources, want) ||
	    mw_array_reserve(merge->outputs, outputs, want) ||
	    mw_array_reserve(merge->by_cpu, by_cpu, want))
		return -ENOMEM;
	merge->max_sources = by_cpu;
	return 0;
}

/* Nothing is ever read from it, and nobody writes to it. */
static uint64_t no_position, no_data;
static const struct mw_ring no_ring = {
	.head = &no_position, .tail = &no_position, .data = (const uint8_t *)&no_data, .size = 8
};

int mw_merge_cpu_add(struct mw_merge *merge, uint32_t cpu)
{
	uint32_t index = merge->nr_sources;
	struct mw_source *source;
	uint32_t at;

	if (index >= MW_MERGE_RINGS_MAX)
		return -ENOSPC;
	if (merge_reserve_sources(merge, index + 1))
		return -ENOMEM;

	source = &merge->sources[index];
	memset(source, 0, sizeof(*source));
	source->cpu = cpu;
	source->in_order = true;
	/* A CPU that is added later was offline before. */
	source->complete_ns = merge->delivered_ns;
	source->reported_at = MW_TIME_MAX;
	mw_merge_ring_attach(merge, index, &no_ring);
	source->detached = true;

	for (at = index; at > 0 && merge->sources[merge->by_cpu[at - 1]].cpu > cpu; at--)
		merge->by_cpu[at] = merge->by_cpu[at - 1];
	merge->by_cpu[at] = (uint16_t)index;
	merge->nr_sources++;
	return (int)index;
}

void mw_merge_ring_attach(struct mw_merge *merge, unsigned int index, const struct mw_ring *ring)
{
	struct mw_source *source = &merge->sources[index];

	merge->outputs[index] = (struct mw_output){ .data = ring->data, .size = ring->size };
	source->ring = *ring;
	source->detached = false;
	source->tail = mw_ring_tail(ring);
	source->scanned = source->tail;
	source->limit = source->tail;
	source->released = source->tail;
}

int mw_merge_ring_add(struct mw_merge *merge, uint32_t cpu, const struct mw_ring *ring)
{
	int index = mw_merge_cpu_add(merge, cpu);

	if (index >= 0)
		mw_merge_ring_attach(merge, (unsigned int)index, ring);
	return index;
}

void mw_merge_ring_detach(struct mw_merge *merge, unsigned int index)
{
	if (index < merge->nr_sources)
		merge->sources[index].detached = true;
}

bool mw_merge_ring_drained(const struct mw_merge *merge, unsigned int index)
{
	const struct mw_source *source = &merge->sources[index];

	return source->detached && mw_source_is_empty(source) && source->tail == source->scanned &&
	       source->limit == mw_ring_head(&source->ring);
}

void mw_merge_lost_add(struct mw_merge *merge, unsigned int index, uint64_t count,
		       uint64_t until_ns)
{
	struct mw_source *source = &merge->sources[index];

	/* the loss comes after everything that is in the ring now */
	source->reported_at = mw_ring_head(&source->ring);
	source->reported_ns = mw_max_u64(source->reported_ns, until_ns);
	source->reported = mw_add_sat(source->reported, count);
	source->lost = mw_add_sat(source->lost, count);
}

void mw_merge_finish(struct mw_merge *merge, uint64_t now_ns)
{
	merge->finishing = true;
	merge->finish_ns = now_ns;
}

/* --------------------------------------------------------------- rounds */

/* Grows both arrays so that all pending entries fit. */
static int merge_reserve_ready(struct mw_merge *merge)
{
	size_t ready = merge->ready_max, scratch = ready, want = 0;

	for (uint32_t i = 0; i < merge->nr_sources; i++)
		want += merge->sources[i].nr_pending;
	if (mw_array_reserve(merge->ready, ready, want) ||
	    mw_array_reserve(merge->scratch, scratch, want))
		return -ENOMEM;
	merge->ready_max = scratch;
	return 0;
}

/* Moves the pending entries older than @mark_ns to @to; returns how many. */
static size_t source_move_older(struct mw_source *source, uint64_t mark_ns,
				struct mw_merge_entry *to)
{
	struct mw_merge_entry *pending = source->pending;
	uint32_t n = source->nr_pending;
	size_t moved = 0;
	uint32_t kept = 0;

	if (source->newest_ns < mark_ns && n) {
		memcpy(to, pending, n * sizeof(*pending));
		source->nr_pending = 0;
		source->tail_stale = true;
		return n;
	}
	if (source->in_order) {
		/* usually these are so few that a call of memcpy() would take longer */
		for (; moved < n && pending[moved].time_ns < mark_ns; moved++)
			to[moved] = pending[moved];
		if (!moved)
			return 0;
		kept = n - (uint32_t)moved;
		memmove(pending, pending + moved, kept * sizeof(*pending));
	} else {
		for (uint32_t i = 0; i < n; i++) {
			if (pending[i].time_ns < mark_ns)
				to[moved++] = pending[i];
			else
				pending[kept++] = pending[i];
		}
	}
	source->nr_pending = kept;
	source->tail_stale = true;
	return moved;
}

/* Moves all pending entries older than the watermark to the ready ones, by CPU. */
static void merge_collect_ready(struct mw_merge *merge, const struct mw_watermark *mark)
{
	size_t count = 0;

	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		struct mw_source *source = &merge->sources[merge->by_cpu[i]];

		if (source->nr_pending)
			count += source_move_older(source, mark->forced_ns, merge->ready + count);
	}
	merge->ready_at = 0;
	merge->ready_count = count;
	merge->natural_ns = mark->natural_ns;
}

int mw_merge_round(struct mw_merge *merge, uint64_t now_ns)
{
	struct mw_watermark mark;
	int err;

	merge->read_at_ns = now_ns;
	merge->future_ns = mw_add_sat(mw_add_sat(now_ns, MW_MERGE_FUTURE_NS), 1);
	if (mw_merge_scan_all(merge))
		return -ENOMEM;
	for (;;) {
		if (merge->finishing && mw_merge_close_gaps(merge))
			return -ENOMEM;
		mw_merge_find_watermark(merge, &mark);
		if (merge_reserve_ready(merge))
			return -ENOMEM;
		merge_collect_ready(merge, &mark);
		if (merge->ready_count) {
			mw_merge_sort(&merge->ready, &merge->scratch, merge->ready_count);
			if (!merge->first_ns)
				merge->first_ns = merge->ready[0].time_ns;
			return 1;
		}
		err = mw_merge_scan_limiting(merge, mark.forced_ns);
		if (!err)
			err = mw_merge_scan_filling(merge);
		if (err <= 0)
			return err;
	}
}
