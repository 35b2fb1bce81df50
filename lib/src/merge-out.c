// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The end of a merge: the frames of a sorted batch are handed out as runs of
 * records, where they lie. See merge.h.
 */
#include "merge-state.h"

/* A loss of the batch, in its own place. */
static void make_lost(struct mw_merge *merge, const struct mw_merge_entry *entry, uint16_t flags,
		      struct mw_merge_run *ret)
{
	struct memwatch_record_lost *lost = (struct memwatch_record_lost *)merge->record;
	struct mw_source *source = &merge->sources[entry->source];
	const struct mw_gap *gap = &source->gaps[entry->place];

	*lost = (struct memwatch_record_lost){
		.h =
			{
				.time_ns = entry->time_ns,
				.type = MEMWATCH_RECORD_LOST,
				.size = sizeof(*lost),
				.cpu = (uint16_t)source->cpu,
				.flags = flags,
			},
		.begin_ns = gap->begin_ns,
		.count = gap->count,
	};
	source->gaps_used &= ~(1ULL << entry->place);
	*ret = (struct mw_merge_run){&lost->h, 1, 0};
}

/* What is looked at in a frame. */
struct view {
	const uint8_t *at;
	const uint8_t *end;
	uint64_t time_ns;
	uint32_t records;
};

/*
 * How many records of a frame make sense. The frame was looked at and the first
 * record with it; that this still holds is up to the writer, that we stay in the
 * frame is up to us. Where the record after a bad one starts is unknown.
 */
static uint32_t count_valid(const struct view *view)
{
	const uint8_t *at = view->at;
	uint32_t n;

	for (n = 0; n < view->records; n++) {
		const struct memwatch_record_header *header =
			(const struct memwatch_record_header *)at;
		size_t room = (size_t)(view->end - at);

		if (room < sizeof(*header) || header->size > room || header->size % 8 ||
		    header->flags || header->time_ns != view->time_ns)
			break;
		if (!mw_record_common(header) &&
		    (view->records > 1 || !mw_record_valid(header, room)))
			break;
		at += header->size;
	}
	return n;
}

/*
 * Is it what a tick sends: records that start alike, and as the last one perhaps
 * the tick? Then all of them make sense, which is found out without a decision a
 * record.
 */
static inline bool is_plain(const struct view *view, const struct memwatch_record_header **last)
{
	const struct memwatch_record_header *header = (const struct memwatch_record_header *)
							      view->at;
	uint64_t room = (uint64_t)(view->end - view->at), before, differ;
	uint64_t first[2], words[2];

	if (room < sizeof(*header) || !mw_record_common(header))
		return false;
	before = (view->records - 1ULL) * header->size;
	if (view->records - 1 > UINT16_MAX || before + sizeof(*header) > room)
		return false;
	memcpy(first, header, sizeof(first));
	differ = (first[0] ^ view->time_ns) | header->flags | header->size % 8;
	for (uint64_t at = header->size; at < before; at += header->size) {
		memcpy(words, view->at + at, sizeof(words));
		differ |= (words[0] ^ first[0]) | (words[1] ^ first[1]);
	}
	header = (const struct memwatch_record_header *)(view->at + before);
	differ |= (header->time_ns ^ first[0]) | header->flags | header->size % 8;
	*last = header;
	return !differ && mw_record_common(header) && before + header->size <= room;
}

/* From a frame to one that is handed out later. */
static inline ptrdiff_t look_ahead(const struct mw_merge *merge, const uint8_t *frame)
{
	size_t at = merge->batch_at + FRAMES_AHEAD;
	const struct mw_merge_entry *entry = &merge->batch[at];

	if (at >= merge->batch_count || !entry->words)
		return 0;
	return merge->outlets[entry->source].data + entry->place - frame;
}

/* A tick says how many records its CPU has sent so far. */
static inline void note_tick(struct mw_outlet *outlet, const struct memwatch_record_header *header)
{
	if (header->type == MEMWATCH_RECORD_TICK)
		outlet->produced = ((const struct memwatch_record_tick *)header)->produced;
}

/* Any frame, and any loss; a frame whose records are to be flagged is copied. */
static __attribute__((noinline)) uint32_t
take_any(struct mw_merge *merge, const struct mw_merge_entry *entry, struct mw_merge_run *ret)
{
	struct mw_source *source = &merge->sources[entry->source];
	struct mw_outlet *outlet = &merge->outlets[entry->source];
	uint32_t bytes = entry->words * 8U;
	struct mw_merge_run run;
	struct view view;
	uint16_t flags = 0;

	/* equal times are never late, so this is so for the whole frame */
	if (entry->time_ns < merge->delivered_ns)
		flags = MEMWATCH_RECORD_F_LATE;
	else
		merge->delivered_ns = entry->time_ns;
	if (entry->time_ns >= merge->batch_natural_ns)
		flags |= MEMWATCH_RECORD_F_FORCED;
	merge->produced = outlet->produced;
	if (!bytes) {
		make_lost(merge, entry, flags, ret);
		merge->first = ret->at;
		return 1;
	}

	mw_ring_copy(&source->ring, entry->place, merge->frame, bytes);
	memcpy(&view.records, merge->frame + offsetof(struct mw_frame, records),
	       sizeof(view.records));
	view.at = merge->frame + sizeof(struct mw_frame);
	view.end = merge->frame + bytes;
	view.time_ns = entry->time_ns;
	run = (struct mw_merge_run){(const struct memwatch_record_header *)view.at,
				    count_valid(&view), 0};
	*ret = run;
	merge->first = run.at;
	source->malformed += view.records - run.left;
	if (flags & MEMWATCH_RECORD_F_LATE)
		source->late += run.left;
	if (flags & MEMWATCH_RECORD_F_FORCED)
		merge->forced += run.left;
	outlet->delivered += run.left;
	while (run.left) {
		const struct memwatch_record_header *header = mw_merge_run_next(&run);

		note_tick(outlet, header);
		((struct memwatch_record_header *)header)->flags = flags;
	}
	return ret->left;
}

/* The usual frame: it does not wrap, is in time, and plain. Returns 0 if it is another one. */
static inline uint32_t take_plain(struct mw_merge *merge, const struct mw_merge_entry *entry,
				  struct mw_merge_run *ret)
{
	struct mw_outlet *outlet = &merge->outlets[entry->source];
	const uint8_t *frame = outlet->data + entry->place;
	const struct memwatch_record_header *last;
	uint32_t bytes = entry->words * 8U;
	struct view view;

	if (entry->time_ns < merge->delivered_ns || entry->time_ns >= merge->batch_natural_ns ||
	    !bytes || bytes > outlet->size - entry->place)
		return 0;
	view = (struct view){frame + sizeof(struct mw_frame), frame + bytes, entry->time_ns, 0};
	memcpy(&view.records, frame + offsetof(struct mw_frame, records), sizeof(view.records));
	if (!is_plain(&view, &last))
		return 0;
	merge->delivered_ns = entry->time_ns;
	merge->produced = outlet->produced;
	note_tick(outlet, last);
	outlet->delivered += view.records;
	merge->first = (const struct memwatch_record_header *)view.at;
	*ret = (struct mw_merge_run){merge->first, view.records, look_ahead(merge, frame)};
	return view.records;
}

int mw_merge_next_run(struct mw_merge *merge, struct mw_merge_run *ret)
{
	while (merge->batch_at < merge->batch_count) {
		const struct mw_merge_entry *entry = &merge->batch[merge->batch_at++];

		merge->source = entry->source;
		if (__builtin_expect(take_plain(merge, entry, ret) != 0, 1) ||
		    take_any(merge, entry, ret))
			return 1;
	}
	return 0;
}
