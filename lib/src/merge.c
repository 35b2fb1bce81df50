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

#include "merge-state.h"
#include "timemath.h"

int mw_merge_new(const struct mw_merge_opts *opts, struct mw_merge **ret)
{
	struct mw_merge *merge = aligned_alloc(64, sizeof(*merge));

	if (!merge)
		return -ENOMEM;
	memset(merge, 0, offsetof(struct mw_merge, frames));
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
	struct mw_source *sources;
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
	struct mw_source *source;
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
	source->run_end = MW_TIME_MAX;
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

bool mw_merge_ring_drained(const struct mw_merge *merge, unsigned int index)
{
	const struct mw_source *source = &merge->sources[index];

	return source->detached && mw_source_is_empty(source) && source->tail == source->scanned &&
	       source->limit == mw_ring_head(&source->ring);
}

static void open_gap(struct mw_source *source, uint64_t count)
{
	if (!source->open.count)
		source->open.begin_ns = source->last_ns;
	source->open.count = mw_add_sat(source->open.count, count);
}

void mw_merge_lost_add(struct mw_merge *merge, unsigned int index, uint64_t count)
{
	struct mw_source *source = &merge->sources[index];

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
static void release_space(struct mw_source *source)
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
	if (tail != source->tail) {
		source->tail = tail;
		mw_ring_release(&source->ring, tail);
	}
	source->release = false;
}

/* ------------------------------------------------ looking at what is new */

static bool is_full(const struct mw_source *source)
{
	return source->nr_pending >= MW_MERGE_PENDING_MAX;
}

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
	source->run_end = MW_TIME_MAX;
}

/* The frames from @pos on, @bytes long, all of the same time. */
static inline void append_run(struct mw_source *source, uint64_t time_ns, uint64_t pos,
			      uint32_t bytes, uint16_t index)
{
	struct mw_merge_entry *last = source->pending + source->nr_pending - 1;

	if (pos == source->run_end && last->time_ns == time_ns &&
	    last->words * 8U + bytes <= RUN_BYTES)
		last->words += (uint16_t)(bytes / 8);
	else
		append(source, time_ns, (uint32_t)(pos & (source->ring.size - 1)),
		       (uint16_t)(bytes / 8), index);
	source->run_end = pos + bytes;
}

/* A record after a loss tells when the loss was over. If there is no place, a later one does. */
static void close_gap(struct mw_source *source, uint64_t time_ns, uint16_t index)
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

static void note_state(struct mw_source *source, uint32_t state)
{
	source->state = state;
	source->away = state == MEMWATCH_CPU_OFFLINE || state == MEMWATCH_CPU_IDLE ||
		       state == MEMWATCH_CPU_STOPPED;
}

/* Takes @bytes of frames at the scanned position, all with this @time_ns. */
static inline void take_frames(struct mw_source *source, uint16_t index, uint64_t time_ns,
			       uint32_t bytes)
{
	if (__builtin_expect(source->open.count != 0, 0))
		close_gap(source, time_ns, index);
	append_run(source, time_ns, source->scanned, bytes, index);
	source->last_ns = time_ns;
	if (time_ns > source->newest_ns)
		source->newest_ns = time_ns;
}

static inline uint64_t load_u64(const uint8_t *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return value;
}

/* Are the headers, of the frame and of the record, the same byte by byte? */
static inline bool same_headers(const uint8_t *a, const uint8_t *b)
{
	return !((load_u64(a) ^ load_u64(b)) | (load_u64(a + 8) ^ load_u64(b + 8)) |
		 (load_u64(a + 16) ^ load_u64(b + 16)) | (load_u64(a + 20) ^ load_u64(b + 20)));
}

/*
 * Memory to ask for while a ring is looked at: every visit of a ring starts at
 * a place that no cache knows, so it is the ring that is visited next, as far in
 * as this one is. That is the time of one visit ahead, and spread over it.
 */
struct ahead {
	const uint8_t *data;
	uint64_t mask;
	uint64_t distance; /* of positions */
};

static struct ahead look_ahead(const struct mw_merge *merge, uint32_t index)
{
	const struct mw_source *here = &merge->sources[index];
	const struct mw_source *next =
		&merge->sources[index + 1 < merge->nr_sources ? index + 1 : 0];

	return (struct ahead){ next->ring.data, next->ring.size - 1,
			       next->scanned - here->scanned + (next == here ? AHEAD_BYTES : 0) };
}

static inline void prefetch_ahead(const struct ahead *ahead, uint64_t pos)
{
	__builtin_prefetch(ahead->data + ((pos + ahead->distance) & ahead->mask));
}

/*
 * A tick sends its samples with one stamp, and all but their payload is the
 * same: what was found true of the first need not be looked at again. Returns
 * how many bytes of frames, with the one at the scanned position, are so;
 * takes what else there is off @count.
 */
static inline uint32_t extend_run(const struct mw_source *source, const struct ahead *ahead,
				  uint32_t length, uint32_t *count)
{
	uint64_t at = source->scanned & (source->ring.size - 1);
	uint64_t end = mw_min_u64(source->limit - source->scanned, source->ring.size - at);
	const uint8_t *first = source->ring.data + at;
	uint32_t bytes = length;

	end = mw_min_u64(end, RUN_BYTES);
	while (*count && bytes + length <= end && same_headers(first, first + bytes)) {
		prefetch_ahead(ahead, source->scanned + bytes);
		bytes += length;
		--*count;
	}
	return bytes;
}

/* Looks at up to @count more items. */
static int scan(struct mw_merge *merge, uint16_t index, uint32_t count)
{
	struct mw_source *source = &merge->sources[index];
	struct memwatch_record_header header;
	struct ahead ahead = look_ahead(merge, index);
	struct mw_ring_entry entry;
	uint32_t length;

	if (is_full(source))
		return 0;
	if (count > MW_MERGE_PENDING_MAX - source->nr_pending)
		count = MW_MERGE_PENDING_MAX - source->nr_pending;
	/* a record may bring a loss with it: more entries than items */
	if (reserve_pending(source, source->nr_pending + count + LOST_SLOTS))
		return -ENOMEM;

	source->release = true;
	while (count-- && source->scanned != source->limit) {
		prefetch_ahead(&ahead, source->scanned);
		length = mw_ring_parse_plain(&source->ring, source->scanned, source->limit, &header);
		if (__builtin_expect(length != 0 && header.time_ns < merge->future_ns, 1)) {
			length = extend_run(source, &ahead, length, &count);
			take_frames(source, index, header.time_ns, length);
			source->scanned += length;
			continue;
		}
		switch (mw_ring_parse(&source->ring, source->scanned, source->limit, &entry)) {
		case MW_RING_RECORD:
			if (entry.header.type == MEMWATCH_RECORD_CPU_STATE)
				note_state(source, entry.cpu_state);
			if (entry.header.time_ns < merge->future_ns)
				take_frames(source, index, entry.header.time_ns, entry.length);
			else
				source->malformed++;
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
			return 0;
		}
		source->scanned += entry.length;
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
		struct mw_source *source = &merge->sources[i];

		if (source->release)
			release_space(source);
		source->limit = mw_ring_head(&source->ring);
		/* one that is far ahead of the others need not run further */
		if (source->nr_pending >= 4 * want || mw_source_is_empty(source))
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
static bool is_pressed(const struct mw_source *source)
{
	uint64_t used = source->limit - source->tail;

	return source->nr_pending && (is_full(source) || (mw_source_is_empty(source) &&
							  used >= source->ring.size / 4 * 3));
}

static bool has_older(const struct mw_source *source, uint64_t time_ns)
{
	for (uint32_t i = 0; i < source->nr_pending; i++) {
		if (source->pending[i].time_ns < time_ns)
			return true;
	}
	return false;
}

static uint64_t natural_frontier(const struct mw_merge *merge, const struct mw_source *source)
{
	uint64_t newest = source->newest_ns;

	if (mw_source_is_empty(source)) {
		if (source->detached)
			return MW_TIME_MAX;
		if (source->away)
			newest = mw_max_u64(newest, merge->read_at_ns);
	}
	return mw_sub_sat(newest, merge->opts.grace_ns);
}

static uint64_t forced_frontier(const struct mw_merge *merge, const struct mw_source *source,
				uint64_t natural, bool overload)
{
	if (is_pressed(source))
		return has_older(source, natural) ? natural : source->newest_ns + 1;
	if (!mw_source_is_empty(source))
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
		const struct mw_source *source = &merge->sources[i];
		uint64_t natural, forced;

		if (merge->finishing && mw_source_is_empty(source))
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
		struct mw_source *source = &merge->sources[i];

		if (mw_source_is_empty(source) || is_full(source) ||
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
		source->run_end = MW_TIME_MAX;
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
	/* the run that could go on may be gone, and another be the last now */
	source->run_end = MW_TIME_MAX;
	source->release = true;
	return taken;
}

static void gather(struct mw_merge *merge, const struct watermark *mark)
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

/* At the end, losses that no record follows end now. */
static int close_last_gaps(struct mw_merge *merge)
{
	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		struct mw_source *source = &merge->sources[i];
		uint64_t end = merge->finish_ns;

		if (!mw_source_is_empty(source))
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
	merge->future_ns = mw_add_sat(mw_add_sat(now_ns, MW_MERGE_FUTURE_NS), 1);
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
		const struct mw_source *source = &merge->sources[i];

		for (uint32_t j = 0; j < source->nr_pending; j++)
			oldest = mw_min_u64(oldest, source->pending[j].time_ns);
	}
	if (oldest == MW_TIME_MAX)
		return MW_TIME_MAX;
	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		const struct mw_source *source = &merge->sources[i];

		if (natural_frontier(merge, source) <= oldest)
			wait = mw_max_u64(wait, source->away ? merge->opts.grace_ns :
							       merge->opts.silent_ns);
	}
	return mw_add_sat(mw_add_sat(oldest, wait), 1);
}

/* -------------------------------------------------------- handing out */

/* Where the next runs lie, each in another ring, was looked at a while ago. */
static inline void prefetch_run(const struct mw_merge *merge, size_t at)
{
	const struct mw_merge_entry *entry = &merge->batch[at];
	const struct mw_ring *ring;
	uint32_t bytes;

	if (at >= merge->batch_count || !entry->words)
		return;
	ring = &merge->sources[entry->source].ring;
	bytes = entry->words * 8U < AHEAD_BYTES ? entry->words * 8U : AHEAD_BYTES;
	for (uint32_t i = 0; i < bytes; i += 64)
		__builtin_prefetch(ring->data + ((entry->place + i) & (ring->size - 1)));
}

static void make_lost(struct mw_merge *merge, struct mw_source *source,
		      const struct mw_merge_entry *entry)
{
	struct memwatch_record_lost *lost = (struct memwatch_record_lost *)merge->record;
	const struct mw_gap *gap = &source->gaps[entry->place];

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

static inline void account(struct mw_merge *merge, struct mw_source *source,
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

/*
 * Copies a run out, at once. It lies in the ring in one piece, 4 bytes off: so
 * all its records get aligned together.
 */
static void begin_run(struct mw_merge *merge, const struct mw_merge_entry *entry)
{
	const struct mw_ring *ring = &merge->sources[entry->source].ring;
	uint32_t bytes = entry->words * 8U;

	mw_ring_copy(ring, entry->place + FRAME_SKIP, merge->frames, bytes - FRAME_SKIP);
	merge->run_at = 0;
	merge->run_left = bytes;
	merge->run_source = entry->source;
	merge->run_before = (uint16_t)mw_ring_before(ring);
}

/*
 * The next record of the run. All was checked when it was looked at; that it
 * still holds is up to the writer, that we stay in our memory is up to us. NULL:
 * it does not hold, and where the next frame starts is unknown.
 */
static inline struct memwatch_record_header *walk_run(struct mw_merge *merge)
{
	uint8_t *frame = merge->frames + merge->run_at;
	struct mw_source *source = &merge->sources[merge->run_source];
	uint32_t before = merge->run_before;
	struct memwatch_record_header *header;
	uint16_t length;

	memcpy(&length, frame + offsetof(struct perf_event_header, size) - FRAME_SKIP,
	       sizeof(length));
	header = (struct memwatch_record_header *)(frame + before - FRAME_SKIP);
	if (__builtin_expect(length > merge->run_left || length % 8 ||
				     length < before + sizeof(*header) ||
				     header->size > length - before, 0)) {
		source->malformed++;
		merge->run_left = 0;
		return NULL;
	}
	merge->run_at += length;
	merge->run_left -= length;
	/* nearly always both are so: a store here would delay the load that is to come */
	if (__builtin_expect(header->time_ns != merge->run_ns, 0))
		header->time_ns = merge->run_ns;
	if (__builtin_expect(header->flags != merge->run_flags, 0))
		header->flags = merge->run_flags;
	account(merge, source, header);
	return header;
}

/* The next run or loss of the batch. Apart, for then the common case needs no stack. */
static __attribute__((noinline)) int next_run(struct mw_merge *merge,
					      const struct memwatch_record_header **ret)
{
	struct memwatch_record_header *header = NULL;
	const struct mw_merge_entry *entry;

	while (!header) {
		if (merge->batch_at == merge->batch_count)
			return 0;
		entry = &merge->batch[merge->batch_at++];
		prefetch_run(merge, merge->batch_at + RUNS_AHEAD);

		/* equal times are never late, so this is so for the whole run */
		merge->run_flags = 0;
		if (entry->time_ns < merge->delivered_ns)
			merge->run_flags = MEMWATCH_RECORD_F_LATE;
		else
			merge->delivered_ns = entry->time_ns;
		if (entry->time_ns >= merge->batch_natural_ns)
			merge->run_flags |= MEMWATCH_RECORD_F_FORCED;
		merge->run_ns = entry->time_ns;

		if (__builtin_expect(entry->words == 0, 0)) {
			header = (struct memwatch_record_header *)merge->record;
			make_lost(merge, &merge->sources[entry->source], entry);
			header->flags = merge->run_flags;
		} else {
			begin_run(merge, entry);
			header = walk_run(merge);
		}
	}
	*ret = header;
	return 1;
}

int mw_merge_next(struct mw_merge *merge, const struct memwatch_record_header **ret)
{
	struct memwatch_record_header *header;

	if (merge->run_left) {
		header = walk_run(merge);
		if (__builtin_expect(header != NULL, 1)) {
			*ret = header;
			return 1;
		}
	}
	return next_run(merge, ret);
}
