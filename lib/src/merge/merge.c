// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The merge, in the order of a round: give back space, look at what is new,
 * find the watermark, take what is older, and hand it out. See merge.h.
 */
#include "merge/merge.h"

#include <errno.h>
#include <stdlib.h>

#include "merge/scan.h"
#include "merge/watermark.h"
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

struct mw_merge *mw_merge_free(struct mw_merge *merge)
{
	if (!merge)
		return NULL;
	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		free(merge->sources[i].pending);
		free(merge->sources[i].gaps);
	}
	free(merge->sources);
	free(merge->outlets);
	free(merge->by_cpu);
	free(merge->batch);
	free(merge->scratch);
	free(merge);
	return NULL;
}

static int grow_sources(struct mw_merge *merge)
{
	uint32_t max = merge->max_sources ? merge->max_sources * 2 : 8;
	struct mw_source *sources;
	struct mw_outlet *outlets;
	uint16_t *by_cpu;

	sources = realloc(merge->sources, max * sizeof(*sources));
	if (!sources)
		return -ENOMEM;
	merge->sources = sources;
	outlets = realloc(merge->outlets, max * sizeof(*outlets));
	if (!outlets)
		return -ENOMEM;
	merge->outlets = outlets;
	by_cpu = realloc(merge->by_cpu, max * sizeof(*by_cpu));
	if (!by_cpu)
		return -ENOMEM;
	merge->by_cpu = by_cpu;
	merge->max_sources = max;
	return 0;
}

int mw_merge_ring_add(struct mw_merge *merge, uint32_t cpu, const struct mw_ring *ring)
{
	uint32_t index = merge->nr_sources;
	struct mw_source *source;
	uint32_t at;

	if (index >= MW_MERGE_RINGS_MAX)
		return -ENOSPC;
	if (index == merge->max_sources && grow_sources(merge))
		return -ENOMEM;

	source = &merge->sources[index];
	memset(source, 0, sizeof(*source));
	source->ring = *ring;
	merge->outlets[index] = (struct mw_outlet){ .data = ring->data, .size = ring->size };
	source->cpu = cpu;
	source->in_order = true;
	source->told_at = MW_TIME_MAX;
	source->tail = mw_ring_tail(ring);
	source->scanned = source->tail;
	source->limit = source->tail;
	source->released = source->tail;

	for (at = index; at > 0 && merge->sources[merge->by_cpu[at - 1]].cpu > cpu; at--)
		merge->by_cpu[at] = merge->by_cpu[at - 1];
	merge->by_cpu[at] = (uint16_t)index;
	merge->nr_sources++;
	return (int)index;
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

void mw_merge_lost_add(struct mw_merge *merge, unsigned int index, uint64_t count)
{
	struct mw_source *source = &merge->sources[index];

	/* the gap opens when what is still in the ring has been read */
	source->told_at = mw_ring_head(&source->ring);
	source->told = mw_add_sat(source->told, count);
	source->lost = mw_add_sat(source->lost, count);
}

void mw_merge_finish(struct mw_merge *merge, uint64_t now_ns)
{
	merge->finishing = true;
	merge->finish_ns = now_ns;
}

/* ------------------------------------------------------ taking a batch */

static int reserve_batch(struct mw_merge *merge)
{
	struct mw_merge_entry *entries;
	size_t want = 0;

	for (uint32_t i = 0; i < merge->nr_sources; i++)
		want += merge->sources[i].nr_pending;
	if (want <= merge->batch_max)
		return 0;
	want += want / 2;

	entries = realloc(merge->batch, want * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	merge->batch = entries;
	entries = realloc(merge->scratch, want * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	merge->scratch = entries;
	merge->batch_max = want;
	return 0;
}

/* Moves what is older than @mark_ns to @to; returns how many. */
static size_t take_older(struct mw_source *source, uint64_t mark_ns, struct mw_merge_entry *to)
{
	struct mw_merge_entry *pending = source->pending;
	uint32_t n = source->nr_pending;
	size_t taken = 0;
	uint32_t kept = 0;

	if (source->newest_ns < mark_ns && n) {
		memcpy(to, pending, n * sizeof(*pending));
		source->nr_pending = 0;
		source->release = true;
		return n;
	}
	if (source->in_order) {
		/* a few: a call would take longer */
		for (; taken < n && pending[taken].time_ns < mark_ns; taken++)
			to[taken] = pending[taken];
		if (!taken)
			return 0;
		kept = n - (uint32_t)taken;
		memmove(pending, pending + taken, kept * sizeof(*pending));
	} else {
		for (uint32_t i = 0; i < n; i++) {
			if (pending[i].time_ns < mark_ns)
				to[taken++] = pending[i];
			else
				pending[kept++] = pending[i];
		}
	}
	source->nr_pending = kept;
	source->release = true;
	return taken;
}

static void gather(struct mw_merge *merge, const struct mw_watermark *mark)
{
	size_t count = 0;

	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		struct mw_source *source = &merge->sources[merge->by_cpu[i]];

		if (source->nr_pending)
			count += take_older(source, mark->forced_ns, merge->batch + count);
	}
	merge->batch_at = 0;
	merge->batch_count = count;
	merge->batch_natural_ns = mark->natural_ns;
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
		if (reserve_batch(merge))
			return -ENOMEM;
		gather(merge, &mark);
		if (merge->batch_count) {
			mw_merge_sort(&merge->batch, &merge->scratch, merge->batch_count);
			return 1;
		}
		err = mw_merge_scan_limiting(merge, mark.forced_ns);
		if (!err)
			err = mw_merge_scan_filling(merge);
		if (err <= 0)
			return err;
	}
}
