// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The end of a merge: the frames of a sorted batch are handed out as runs of
 * records, where they lie. See merge.h.
 */
#include "merge/state.h"

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
	*ret = (struct mw_merge_run){ .at = &lost->h, .left = 1 };
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
	run = (struct mw_merge_run){ .at = (const struct memwatch_record_header *)view.at,
				     .left = count_valid(&view) };
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

/* The part of a header that says what it is a header of: type, size, CPU and flags. */
static inline uint64_t second_word(const struct memwatch_record_header *header)
{
	uint64_t word;

	memcpy(&word, (const uint8_t *)header + sizeof(header->time_ns), sizeof(word));
	return word;
}

static inline uint64_t cpu_bits(void)
{
	static const struct memwatch_record_header header = { .cpu = UINT16_MAX };

	return second_word(&header);
}

static void learn_shape(struct mw_shape *shape, const struct memwatch_record_header *first,
			const struct memwatch_record_header *last)
{
	if (!mw_record_common(first) || !mw_record_common(last))
		return;
	if (first != last || !shape->first_size) {
		shape->first = second_word(first) & ~cpu_bits();
		shape->first_size = first->size;
	}
	shape->last = second_word(last) & ~cpu_bits();
	shape->last_size = last->size;
}

/* In time, and does not wrap: it may be handed out where it lies. */
static inline bool may_stay(const struct mw_merge *merge, const struct mw_merge_entry *entry)
{
	uint64_t bytes = entry->words * 8U;

	return entry->time_ns >= merge->delivered_ns && entry->time_ns < merge->batch_natural_ns &&
	       bytes && bytes <= merge->outlets[entry->source].size - entry->place;
}

static inline void stay(struct mw_merge *merge, const struct mw_merge_entry *entry,
			const uint8_t *frame, uint32_t records, struct mw_merge_run *ret)
{
	struct mw_outlet *outlet = &merge->outlets[entry->source];

	merge->delivered_ns = entry->time_ns;
	merge->produced = outlet->produced;
	merge->first = (const struct memwatch_record_header *)(frame + sizeof(struct mw_frame));
	outlet->delivered += records;
	*ret = (struct mw_merge_run){ merge->first, records, look_ahead(merge, frame),
				      (ptrdiff_t)merge->quantum };
}

/* A frame in which all records make sense. Returns 0 if it is another one. */
static __attribute__((noinline)) uint32_t
take_valid(struct mw_merge *merge, const struct mw_merge_entry *entry, struct mw_merge_run *ret)
{
	struct mw_outlet *outlet = &merge->outlets[entry->source];
	const uint8_t *frame = outlet->data + entry->place;
	const struct memwatch_record_header *last = NULL;
	struct mw_merge_run run;
	struct view view;

	if (!may_stay(merge, entry))
		return 0;
	view = (struct view){ frame + sizeof(struct mw_frame), frame + entry->words * 8U,
			      entry->time_ns, 0 };
	memcpy(&view.records, frame + offsetof(struct mw_frame, records), sizeof(view.records));
	if (!view.records || count_valid(&view) != view.records)
		return 0;
	stay(merge, entry, frame, view.records, ret);
	for (run = *ret; run.left;) {
		last = mw_merge_run_next(&run);
		note_tick(outlet, last);
	}
	learn_shape(&merge->shape, ret->at, last);
	return view.records;
}

/*
 * The usual frame: of the shape that was learned, so that all of its records make sense
 * if their headers are the expected ones. That is found out without a decision a record.
 */
static inline uint32_t take_alike(struct mw_merge *merge, const struct mw_merge_entry *entry,
				  struct mw_merge_run *ret)
{
	const struct mw_shape *shape = &merge->shape;
	struct mw_outlet *outlet = &merge->outlets[entry->source];
	const uint8_t *frame = outlet->data + entry->place, *at = frame + sizeof(struct mw_frame);
	uint64_t before, words[2], like, differ;
	uint32_t records;

	if (!may_stay(merge, entry))
		return 0;
	memcpy(&records, frame + offsetof(struct mw_frame, records), sizeof(records));
	before = (uint64_t)(records - 1) * shape->first_size;
	if (!shape->last_size ||
	    sizeof(struct mw_frame) + before + shape->last_size != entry->words * 8U)
		return 0;
	memcpy(words, at + before, sizeof(words));
	differ = (words[0] ^ entry->time_ns) | ((words[1] & ~cpu_bits()) ^ shape->last);
	like = shape->first | (words[1] & cpu_bits());
	for (const uint8_t *last = at + before; at < last; at += shape->first_size) {
		memcpy(words, at, sizeof(words));
		differ |= (words[0] ^ entry->time_ns) | (words[1] ^ like);
	}
	if (differ)
		return 0;
	stay(merge, entry, frame, records, ret);
	note_tick(outlet, (const struct memwatch_record_header *)at);
	return records;
}

int mw_merge_next_run(struct mw_merge *merge, struct mw_merge_run *ret)
{
	while (merge->batch_at < merge->batch_count) {
		const struct mw_merge_entry *entry = &merge->batch[merge->batch_at++];

		merge->source = entry->source;
		if (__builtin_expect(take_alike(merge, entry, ret) != 0, 1) ||
		    take_valid(merge, entry, ret) || take_any(merge, entry, ret))
			return 1;
	}
	return 0;
}
