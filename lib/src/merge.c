// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The merge, in the order of a round: give back space, look at what is new,
 * find the watermark, take what is older, and hand it out. See merge.h.
 */
#include "merge.h"

#include <errno.h>
#include <stdlib.h>

#include "merge-sort.h"
#include "timemath.h"

#define LOST_SLOTS 64

/* A loss between two records of one ring, waiting for its turn. */
struct gap {
	uint64_t begin_ns;
	uint64_t count;
};

struct source {
	struct mw_ring ring;
	struct mw_merge_entry *pending; /* in order of arrival */
	uint32_t nr_pending;
	uint32_t max_pending;
	bool in_order; /* the pending ones are sorted as they are */
	bool away;     /* the CPU said that it has nothing to say */
	bool detached;
	bool release; /* the tail has to move */
	uint32_t cpu;
	uint32_t state;
	uint64_t scanned; /* position: looked at up to here */
	uint64_t limit;	  /* position: written up to here, when last loaded */
	uint64_t tail;	  /* position: given back up to here */
	uint64_t newest_ns;
	uint64_t last_ns; /* of the last in order of arrival */
	struct gap open;  /* lost, and no record after it seen yet */
	uint64_t lost_at_end;
	struct gap gaps[LOST_SLOTS];
	uint64_t gaps_used; /* bit mask */
	uint64_t produced;
	uint64_t delivered;
	uint64_t late;
	uint64_t lost;
	uint64_t malformed;
};

struct mw_merge {
	struct mw_merge_opts opts;
	struct source *sources;
	uint16_t *by_cpu; /* indices of sources, for the order among equals */
	uint32_t nr_sources;
	uint32_t max_sources;

	struct mw_merge_entry *batch;
	struct mw_merge_entry *scratch;
	size_t batch_at;
	size_t batch_count;
	size_t batch_max;
	uint64_t batch_natural_ns; /* records from here on are FORCED */

	uint64_t read_at_ns;
	uint64_t delivered_ns; /* largest time handed out */
	uint64_t forced;
	uint64_t finish_ns;
	bool finishing;

	uint64_t record[UINT16_MAX / 8 + 1];
};

int mw_merge_new(const struct mw_merge_opts *opts, struct mw_merge **ret)
{
	struct mw_merge *merge = calloc(1, sizeof(*merge));

	if (!merge)
		return -ENOMEM;
	merge->opts = *opts;
	*ret = merge;
	return 0;
}

struct mw_merge *mw_merge_free(struct mw_merge *merge)
{
	if (!merge)
		return NULL;
	for (uint32_t i = 0; i < merge->nr_sources; i++)
		free(merge->sources[i].pending);
	free(merge->sources);
	free(merge->by_cpu);
	free(merge->batch);
	free(merge->scratch);
	free(merge);
	return NULL;
}

static int grow_sources(struct mw_merge *merge)
{
	uint32_t max = merge->max_sources ? merge->max_sources * 2 : 8;
	struct source *sources;
	uint16_t *by_cpu;

	sources = realloc(merge->sources, max * sizeof(*sources));
	if (!sources)
		return -ENOMEM;
	merge->sources = sources;
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
	struct source *source;
	uint32_t at;

	if (index >= MW_MERGE_RINGS_MAX)
		return -ENOSPC;
	if (index == merge->max_sources && grow_sources(merge))
		return -ENOMEM;

	source = &merge->sources[index];
	memset(source, 0, sizeof(*source));
	source->ring = *ring;
	source->cpu = cpu;
	source->in_order = true;
	source->tail = mw_ring_tail(ring);
	source->scanned = source->tail;
	source->limit = source->tail;

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

static bool is_empty(const struct source *source)
{
	return source->scanned == source->limit;
}

bool mw_merge_ring_drained(const struct mw_merge *merge, unsigned int index)
{
	const struct source *source = &merge->sources[index];

	return source->detached && is_empty(source) && source->tail == source->scanned &&
	       source->limit == mw_ring_head(&source->ring);
}

static void open_gap(struct source *source, uint64_t count)
{
	if (!source->open.count)
		source->open.begin_ns = source->last_ns;
	source->open.count = mw_add_sat(source->open.count, count);
}

void mw_merge_lost_add(struct mw_merge *merge, unsigned int index, uint64_t count)
{
	struct source *source = &merge->sources[index];

	/* what is still in the ring lies before it: the gap opens when that is read */
	source->lost_at_end = mw_add_sat(source->lost_at_end, count);
	source->lost = mw_add_sat(source->lost, count);
}

void mw_merge_finish(struct mw_merge *merge, uint64_t now_ns)
{
	merge->finishing = true;
	merge->finish_ns = now_ns;
}

/* --------------------------------------------------- giving back space */

/* Everything handed out is no longer used; what is pending still is. */
static void release_space(struct source *source)
{
	const struct mw_merge_entry *entry = source->pending;
	uint64_t mask = source->ring.size - 1;
	uint64_t tail = source->scanned;
	uint32_t i = 0;

	while (i < source->nr_pending && !entry[i].size)
		i++;
	if (i < source->nr_pending) {
		/* From the payload back to its header: a multiple of 8, less 4 or 12. */
		uint64_t before = sizeof(struct perf_event_header) + sizeof(uint32_t) +
				  (source->ring.sampled_time ? 8 : 0);
		uint64_t distance = (source->scanned - (entry[i].place - before)) & mask;

		/* no distance at all is a whole ring, for something is pending */
		tail -= distance ? distance : source->ring.size;
	}
	if (tail != source->tail) {
		source->tail = tail;
		mw_ring_release(&source->ring, tail);
	}
	source->release = false;
}

/* ------------------------------------------------ looking at what is new */

static bool is_full(const struct source *source)
{
	return source->nr_pending >= MW_MERGE_PENDING_MAX;
}

static int reserve_pending(struct source *source, uint32_t count)
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

static inline void append(struct source *source, uint64_t time_ns, uint32_t place, uint16_t size,
			  uint16_t index)
{
	uint32_t n = source->nr_pending;

	if (n == 0)
		source->in_order = true;
	else if (time_ns < source->pending[n - 1].time_ns)
		source->in_order = false;
	source->pending[n] = (struct mw_merge_entry){ time_ns, place, size, index };
	source->nr_pending = n + 1;
}

/* A record after a loss tells when the loss was over. If there is no place, a later one does. */
static void close_gap(struct source *source, uint64_t time_ns, uint16_t index)
{
	unsigned int slot;

	if (source->gaps_used == UINT64_MAX)
		return;
	slot = (unsigned int)__builtin_ctzll(~source->gaps_used);
	source->gaps_used |= 1ULL << slot;
	source->gaps[slot] = source->open;
	source->gaps[slot].begin_ns = mw_min_u64(source->open.begin_ns, time_ns);
	source->open.count = 0;
	append(source, time_ns, slot, 0, index);
}

static void note_state(struct source *source, uint32_t state)
{
	source->state = state;
	source->away = state == MEMWATCH_CPU_OFFLINE || state == MEMWATCH_CPU_IDLE ||
		       state == MEMWATCH_CPU_STOPPED;
}

static void take_record(struct mw_merge *merge, struct source *source, uint16_t index,
			const struct mw_ring_entry *entry)
{
	uint64_t time_ns = entry->header.time_ns;

	if (time_ns == MW_TIME_MAX ||
	    time_ns > mw_add_sat(merge->read_at_ns, MW_MERGE_FUTURE_NS)) {
		source->malformed++;
		return;
	}
	if (__builtin_expect(source->open.count != 0, 0))
		close_gap(source, time_ns, index);
	if (__builtin_expect(entry->header.type == MEMWATCH_RECORD_CPU_STATE, 0))
		note_state(source, entry->cpu_state);
	append(source, time_ns, (uint32_t)(entry->payload & (source->ring.size - 1)),
	       entry->header.size, index);
	source->last_ns = time_ns;
	if (time_ns > source->newest_ns)
		source->newest_ns = time_ns;
}

/* Looks at up to @count more items. */
static int scan(struct mw_merge *merge, uint16_t index, uint32_t count)
{
	struct source *source = &merge->sources[index];
	struct mw_ring_entry entry;

	if (is_full(source))
		return 0;
	if (count > MW_MERGE_PENDING_MAX - source->nr_pending)
		count = MW_MERGE_PENDING_MAX - source->nr_pending;
	/* a record may bring a loss with it: more entries than items */
	if (reserve_pending(source, source->nr_pending + count + LOST_SLOTS))
		return -ENOMEM;

	while (count-- && source->scanned != source->limit) {
		switch (mw_ring_parse(&source->ring, source->scanned, source->limit, &entry)) {
		case MW_RING_RECORD:
			take_record(merge, source, index, &entry);
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
			source->scanned = source->limit;
			source->release = true;
			return 0;
		}
		source->scanned += entry.length;
		source->release = true;
	}
	return 0;
}

static uint32_t quantum(const struct mw_merge *merge)
{
	uint32_t share;

	if (merge->opts.quantum)
		return merge->opts.quantum;
	/* A batch, with the records it points to, is to stay in the second level cache. */
	share = 4096 / (merge->nr_sources ? merge->nr_sources : 1);
	return share < 16 ? 16 : share > 1024 ? 1024 : share;
}

static int scan_all(struct mw_merge *merge)
{
	uint32_t want = quantum(merge);

	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		struct source *source = &merge->sources[i];

		if (source->release)
			release_space(source);
		source->limit = mw_ring_head(&source->ring);
		/* one that is far ahead of the others need not run further */
		if (source->nr_pending >= 4 * want || is_empty(source))
			continue;
		if (scan(merge, (uint16_t)i, want))
			return -ENOMEM;
	}
	return 0;
}

/* ----------------------------------------------------------- watermark */

struct watermark {
	uint64_t natural_ns; /* without guesses */
	uint64_t forced_ns;  /* with them; the one that holds */
};

/* It can take no more and has nothing more to look at: somebody has to give way. */
static bool is_pressed(const struct source *source)
{
	uint64_t used = source->limit - source->tail;

	return source->nr_pending &&
	       (is_full(source) || (is_empty(source) && used >= source->ring.size / 4 * 3));
}

static bool has_older(const struct source *source, uint64_t time_ns)
{
	for (uint32_t i = 0; i < source->nr_pending; i++) {
		if (source->pending[i].time_ns < time_ns)
			return true;
	}
	return false;
}

static uint64_t natural_frontier(const struct mw_merge *merge, const struct source *source)
{
	uint64_t newest = source->newest_ns;

	if (is_empty(source)) {
		if (source->detached)
			return MW_TIME_MAX;
		if (source->away)
			newest = mw_max_u64(newest, merge->read_at_ns);
	}
	return mw_sub_sat(newest, merge->opts.grace_ns);
}

static uint64_t forced_frontier(const struct mw_merge *merge, const struct source *source,
				uint64_t natural, bool overload)
{
	if (is_pressed(source))
		return has_older(source, natural) ? natural : source->newest_ns + 1;
	if (!is_empty(source))
		return natural;
	if (overload)
		return MW_TIME_MAX;
	return mw_max_u64(natural, mw_sub_sat(merge->read_at_ns, merge->opts.silent_ns));
}

static bool any_pressed(const struct mw_merge *merge)
{
	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		if (is_pressed(&merge->sources[i]))
			return true;
	}
	return false;
}

static void find_watermark(const struct mw_merge *merge, struct watermark *mark)
{
	bool overload = any_pressed(merge);

	mark->natural_ns = MW_TIME_MAX;
	mark->forced_ns = MW_TIME_MAX;
	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		const struct source *source = &merge->sources[i];
		uint64_t natural, forced;

		if (merge->finishing && is_empty(source))
			continue;
		natural = natural_frontier(merge, source);
		forced = forced_frontier(merge, source, natural, overload);
		mark->natural_ns = mw_min_u64(mark->natural_ns, natural);
		mark->forced_ns = mw_min_u64(mark->forced_ns, forced);
	}
}

/* The rings that hold the watermark back and have more to look at. */
static int scan_limiting(struct mw_merge *merge, uint64_t mark_ns)
{
	int progress = 0;

	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		struct source *source = &merge->sources[i];

		if (is_empty(source) || is_full(source) ||
		    natural_frontier(merge, source) > mark_ns)
			continue;
		if (scan(merge, (uint16_t)i, quantum(merge)))
			return -ENOMEM;
		progress = 1;
	}
	return progress;
}

/* ------------------------------------------------------ taking a batch */

static int reserve_batch(struct mw_merge *merge)
{
	size_t want = 0;
	struct mw_merge_entry *entries;

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
static size_t take_older(struct source *source, uint64_t mark_ns, struct mw_merge_entry *to)
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
		while (taken < n && pending[taken].time_ns < mark_ns)
			taken++;
		if (!taken)
			return 0;
		memcpy(to, pending, taken * sizeof(*pending));
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

static void gather(struct mw_merge *merge, const struct watermark *mark)
{
	size_t count = 0;

	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		struct source *source = &merge->sources[merge->by_cpu[i]];

		if (source->nr_pending)
			count += take_older(source, mark->forced_ns, merge->batch + count);
	}
	merge->batch_at = 0;
	merge->batch_count = count;
	merge->batch_natural_ns = mark->natural_ns;
}

/* At the end, losses that no record follows end now. */
static int close_last_gaps(struct mw_merge *merge)
{
	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		struct source *source = &merge->sources[i];
		uint64_t end = merge->finish_ns;

		if (!is_empty(source))
			continue;
		open_gap(source, source->lost_at_end);
		source->lost_at_end = 0;
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

int mw_merge_round(struct mw_merge *merge, uint64_t now_ns)
{
	struct watermark mark;
	int err;

	merge->read_at_ns = now_ns;
	if (scan_all(merge))
		return -ENOMEM;
	for (;;) {
		if (merge->finishing && close_last_gaps(merge))
			return -ENOMEM;
		find_watermark(merge, &mark);
		if (reserve_batch(merge))
			return -ENOMEM;
		gather(merge, &mark);
		if (merge->batch_count) {
			mw_merge_sort(&merge->batch, &merge->scratch, merge->batch_count);
			return 1;
		}
		err = scan_limiting(merge, mark.forced_ns);
		if (err <= 0)
			return err;
	}
}

uint64_t mw_merge_deadline(const struct mw_merge *merge)
{
	uint64_t oldest = MW_TIME_MAX;
	uint64_t wait = 0;

	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		const struct source *source = &merge->sources[i];

		for (uint32_t j = 0; j < source->nr_pending; j++)
			oldest = mw_min_u64(oldest, source->pending[j].time_ns);
	}
	if (oldest == MW_TIME_MAX)
		return MW_TIME_MAX;
	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		const struct source *source = &merge->sources[i];

		if (natural_frontier(merge, source) <= oldest)
			wait = mw_max_u64(wait, source->away ? merge->opts.grace_ns :
							       merge->opts.silent_ns);
	}
	return mw_add_sat(mw_add_sat(oldest, wait), 1);
}

/* -------------------------------------------------------- handing out */

static inline void prefetch_record(const struct mw_merge *merge, size_t at)
{
	const struct mw_merge_entry *entry = &merge->batch[at];
	const struct source *source;

	if (at >= merge->batch_count || !entry->size)
		return;
	source = &merge->sources[entry->source];
	__builtin_prefetch(source->ring.data + entry->place);
	__builtin_prefetch(source->ring.data + ((entry->place + 64) & (source->ring.size - 1)));
}

static void make_lost(struct mw_merge *merge, struct source *source,
		      const struct mw_merge_entry *entry)
{
	struct memwatch_record_lost *lost = (struct memwatch_record_lost *)merge->record;
	const struct gap *gap = &source->gaps[entry->place];

	*lost = (struct memwatch_record_lost){
		.h = {
			.time_ns = entry->time_ns,
			.type = MEMWATCH_RECORD_LOST,
			.size = sizeof(*lost),
			.cpu = (uint16_t)source->cpu,
		},
		.begin_ns = gap->begin_ns,
		.count = gap->count,
	};
	source->gaps_used &= ~(1ULL << entry->place);
}

static void account(struct mw_merge *merge, struct source *source,
		    const struct memwatch_record_header *header)
{
	source->delivered++;
	if (__builtin_expect(header->flags != 0, 0)) {
		source->late += !!(header->flags & MEMWATCH_RECORD_F_LATE);
		merge->forced += !!(header->flags & MEMWATCH_RECORD_F_FORCED);
	}
	if (header->type == MEMWATCH_RECORD_TICK)
		source->produced = ((const struct memwatch_record_tick *)header)->produced;
}

int mw_merge_next(struct mw_merge *merge, const struct memwatch_record_header **ret)
{
	struct memwatch_record_header *header = (struct memwatch_record_header *)merge->record;
	const struct mw_merge_entry *entry;
	struct source *source;
	uint16_t flags = 0;

	if (merge->batch_at == merge->batch_count)
		return 0;
	entry = &merge->batch[merge->batch_at++];
	prefetch_record(merge, merge->batch_at + 6);
	source = &merge->sources[entry->source];

	if (entry->time_ns < merge->delivered_ns)
		flags = MEMWATCH_RECORD_F_LATE;
	else
		merge->delivered_ns = entry->time_ns;
	if (entry->time_ns >= merge->batch_natural_ns)
		flags |= MEMWATCH_RECORD_F_FORCED;

	if (__builtin_expect(entry->size == 0, 0)) {
		make_lost(merge, source, entry);
		header->flags = flags;
	} else {
		mw_ring_copy(&source->ring, entry->place, header, entry->size);
		/* checked when it was looked at; the check has to hold although memory may not */
		header->size = entry->size;
		header->time_ns = entry->time_ns;
		header->flags = flags;
		account(merge, source, header);
	}
	*ret = header;
	return 1;
}

/* ---------------------------------------------------------- statistics */

static bool is_silent(const struct mw_merge *merge, const struct source *source)
{
	return is_empty(source) && !source->away && !source->detached &&
	       source->newest_ns < mw_sub_sat(merge->read_at_ns, merge->opts.silent_ns);
}

void mw_merge_stats(const struct mw_merge *merge, struct memwatch_stream_stats *ret)
{
	ret->forced = merge->forced;
	ret->watermark_ns = merge->delivered_ns;
	ret->memory_bytes = sizeof(*merge) + merge->max_sources * sizeof(*merge->sources) +
			    2 * merge->batch_max * sizeof(*merge->batch);
	ret->rings = merge->nr_sources;
	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		const struct source *source = &merge->sources[i];

		ret->produced += source->produced;
		ret->delivered += source->delivered;
		ret->late += source->late;
		ret->lost = mw_add_sat(ret->lost, source->lost);
		ret->malformed += source->malformed;
		ret->memory_bytes += source->ring.size +
				     source->max_pending * sizeof(*source->pending);
		ret->rings_silent += is_silent(merge, source);
	}
}

int mw_merge_cpu_stats(const struct mw_merge *merge, unsigned int index,
		       struct memwatch_stream_cpu_stats *ret)
{
	const struct source *source;

	if (index >= merge->nr_sources)
		return 0;
	source = &merge->sources[index];
	ret->produced = source->produced;
	ret->delivered = source->delivered;
	ret->late = source->late;
	ret->lost = source->lost;
	ret->malformed = source->malformed;
	ret->newest_ns = source->newest_ns;
	ret->cpu = source->cpu;
	ret->state = source->state;
	return 1;
}
