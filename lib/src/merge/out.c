// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Delivery: the ready frames of a round become runs of records, in place if possible.
 * See merge.h.
 */
#include "merge/state.h"

/* Makes the record of a loss and frees its gap. */
static void deliver_lost(struct mw_merge *merge, const struct mw_merge_entry *entry, uint16_t flags,
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
		.end_ns = gap->end_ns,
		.count = gap->count,
	};
	source->gaps_used &= ~(1ULL << entry->place);
	*ret = (struct mw_merge_run){ .at = &lost->h, .left = 1 };
}

/* The records of a frame, and what the frame says about them. */
struct frame_view {
	const uint8_t *at;
	const uint8_t *end;
	uint64_t time_ns;
	uint32_t records;
};

/* Between samples and tick there may be an RDT record; other types are alone in a frame. */
static bool is_alone_or_rdt(const struct frame_view *view,
			    const struct memwatch_record_header *header, uint32_t number)
{
	return view->records == 1 || (number && header->type == MEMWATCH_RECORD_RDT);
}

/*
 * How many records of a frame are valid. Scanning has checked the frame and the first
 * record, but the writer may have changed them since, so nothing is read outside of the
 * frame. The records after an invalid one are lost, because their start is unknown.
 */
static uint32_t count_valid_records(const struct frame_view *view)
{
	const uint8_t *at = view->at;
	uint32_t n;

	for (n = 0; n < view->records; n++) {
		const struct memwatch_record_header *header =
			(const struct memwatch_record_header *)at;
		size_t left = (size_t)(view->end - at);

		if (left < sizeof(*header) || header->size > left || header->size % 8 ||
		    header->flags || header->time_ns != view->time_ns)
			break;
		if (!mw_record_common(header) &&
		    (!is_alone_or_rdt(view, header, n) || !mw_record_valid(header, left)))
			break;
		at += header->size;
	}
	return n;
}

/*
 * For prefetching: bytes from @frame to the frame MW_FRAMES_AHEAD places later; 0 if there is
 * none.
 */
static inline ptrdiff_t find_prefetch(const struct mw_merge *merge, const uint8_t *frame)
{
	size_t at = merge->ready_at + MW_FRAMES_AHEAD;
	const struct mw_merge_entry *entry = &merge->ready[at];

	if (at >= merge->ready_count || !entry->words)
		return 0;
	return merge->outputs[entry->source].data + entry->place - frame;
}

/* A tick contains how many records its CPU has sent so far. */
static inline void note_tick_count(struct mw_output *output,
				   const struct memwatch_record_header *header)
{
	if (header->type == MEMWATCH_RECORD_TICK)
		output->produced = ((const struct memwatch_record_tick *)header)->produced;
}

/*
 * Delivers a loss, or a copy of any frame, with flags where they apply. Returns the
 * number of records, which is 0 if none is valid.
 */
static __attribute__((noinline)) uint32_t
deliver_copy(struct mw_merge *merge, const struct mw_merge_entry *entry, struct mw_merge_run *ret)
{
	struct mw_source *source = &merge->sources[entry->source];
	struct mw_output *output = &merge->outputs[entry->source];
	uint32_t bytes = entry->words * 8U;
	struct mw_merge_run run;
	struct frame_view view;
	uint16_t flags = 0;

	/* all records of a frame have one time, so all of them are late or none is */
	if (entry->time_ns < merge->delivered_ns)
		flags = MEMWATCH_RECORD_F_LATE;
	else
		merge->delivered_ns = entry->time_ns;
	if (entry->time_ns >= merge->natural_ns)
		flags |= MEMWATCH_RECORD_F_FORCED;
	merge->produced = output->produced;
	if (!bytes) {
		deliver_lost(merge, entry, flags, ret);
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
				     .left = count_valid_records(&view) };
	*ret = run;
	merge->first = run.at;
	source->malformed += view.records - run.left;
	if (flags & MEMWATCH_RECORD_F_LATE)
		source->late += run.left;
	if (flags & MEMWATCH_RECORD_F_FORCED)
		merge->forced += run.left;
	output->delivered += run.left;
	while (run.left) {
		const struct memwatch_record_header *header = mw_merge_run_next(&run);

		note_tick_count(output, header);
		((struct memwatch_record_header *)header)->flags = flags;
	}
	return ret->left;
}

/* The second word of a header: type, size, CPU and flags. */
static inline uint64_t header_second_word(const struct memwatch_record_header *header)
{
	uint64_t word;

	memcpy(&word, (const uint8_t *)header + sizeof(header->time_ns), sizeof(word));
	return word;
}

static inline uint64_t header_cpu_mask(void)
{
	static const struct memwatch_record_header header = { .cpu = UINT16_MAX };

	return header_second_word(&header);
}

static void learn_shape(struct mw_shape *shape, const struct memwatch_record_header *first,
			const struct memwatch_record_header *last)
{
	if (!mw_record_common(first) || !mw_record_common(last))
		return;
	if (first != last || !shape->first_size) {
		shape->first = header_second_word(first) & ~header_cpu_mask();
		shape->first_size = first->size;
	}
	shape->last = header_second_word(last) & ~header_cpu_mask();
	shape->last_size = last->size;
}

/* A frame that needs no flags and does not wrap can be delivered in place. */
static inline bool can_stay_in_place(const struct mw_merge *merge,
				     const struct mw_merge_entry *entry)
{
	uint64_t bytes = entry->words * 8U;

	return entry->time_ns >= merge->delivered_ns && entry->time_ns < merge->natural_ns &&
	       bytes && bytes <= merge->outputs[entry->source].size - entry->place;
}

static inline void deliver_in_place(struct mw_merge *merge, const struct mw_merge_entry *entry,
				    const uint8_t *frame, uint32_t records,
				    struct mw_merge_run *ret)
{
	struct mw_output *output = &merge->outputs[entry->source];

	merge->delivered_ns = entry->time_ns;
	merge->produced = output->produced;
	merge->first = (const struct memwatch_record_header *)(frame + sizeof(struct mw_frame));
	output->delivered += records;
	*ret = (struct mw_merge_run){ merge->first, records, find_prefetch(merge, frame),
				      (ptrdiff_t)merge->quantum };
}

/* Delivers a frame in place if all its records are valid; returns 0 if it cannot. */
static __attribute__((noinline)) uint32_t deliver_checked(struct mw_merge *merge,
							  const struct mw_merge_entry *entry,
							  struct mw_merge_run *ret)
{
	struct mw_output *output = &merge->outputs[entry->source];
	const uint8_t *frame = output->data + entry->place;
	const struct memwatch_record_header *last = NULL;
	struct mw_merge_run run;
	struct frame_view view;

	if (!can_stay_in_place(merge, entry))
		return 0;
	view = (struct frame_view){ frame + sizeof(struct mw_frame), frame + entry->words * 8U,
				    entry->time_ns, 0 };
	memcpy(&view.records, frame + offsetof(struct mw_frame, records), sizeof(view.records));
	if (!view.records || count_valid_records(&view) != view.records)
		return 0;
	deliver_in_place(merge, entry, frame, view.records, ret);
	for (run = *ret; run.left;) {
		last = mw_merge_run_next(&run);
		note_tick_count(output, last);
	}
	learn_shape(&merge->shape, ret->at, last);
	return view.records;
}

/*
 * Is the record before the last one an RDT record? @rest: the bytes before the last record;
 * @before: set to the bytes of the other records.
 */
static inline bool has_rdt(const struct mw_shape *shape, uint32_t records, uint64_t *before,
			   uint64_t rest)
{
	*before -= shape->first_size;
	return records >= 3 && *before + sizeof(struct memwatch_record_rdt) == rest;
}

/* Returns 0 if there is the header of an RDT record @at that has the time and CPU of the last. */
static inline uint64_t compare_rdt(const uint8_t *at, const uint64_t *last)
{
	static const struct memwatch_record_header header = {
		.type = MEMWATCH_RECORD_RDT, .size = sizeof(struct memwatch_record_rdt)
	};
	uint64_t words[2];

	memcpy(words, at, sizeof(words));
	return (words[0] ^ last[0]) |
	       (words[1] ^ (header_second_word(&header) | (last[1] & header_cpu_mask())));
}

/*
 * Delivers a frame in place if it has the shape that was learned; returns 0 if not. All
 * headers of such a frame are known beforehand except for the time, so they are compared
 * without a branch per record.
 */
static inline uint32_t deliver_matching(struct mw_merge *merge, const struct mw_merge_entry *entry,
					struct mw_merge_run *ret)
{
	const struct mw_shape *shape = &merge->shape;
	struct mw_output *output = &merge->outputs[entry->source];
	const uint8_t *frame = output->data + entry->place, *at = frame + sizeof(struct mw_frame);
	uint64_t before, rest, words[2], expected, differ;
	uint32_t records;

	if (!can_stay_in_place(merge, entry))
		return 0;
	memcpy(&records, frame + offsetof(struct mw_frame, records), sizeof(records));
	before = (uint64_t)(records - 1) * shape->first_size;
	rest = entry->words * 8U - sizeof(struct mw_frame) - shape->last_size;
	if (!shape->last_size || (before != rest && !has_rdt(shape, records, &before, rest)))
		return 0;
	memcpy(words, at + rest, sizeof(words));
	differ = (words[0] ^ entry->time_ns) | ((words[1] & ~header_cpu_mask()) ^ shape->last);
	if (before != rest)
		differ |= compare_rdt(at + before, words);
	expected = shape->first | (words[1] & header_cpu_mask());
	for (const uint8_t *last = at + before; at < last; at += shape->first_size) {
		memcpy(words, at, sizeof(words));
		differ |= (words[0] ^ entry->time_ns) | (words[1] ^ expected);
	}
	if (differ)
		return 0;
	deliver_in_place(merge, entry, frame, records, ret);
	note_tick_count(output, (const struct memwatch_record_header *)(at + rest - before));
	return records;
}

int mw_merge_next_run(struct mw_merge *merge, struct mw_merge_run *ret)
{
	while (merge->ready_at < merge->ready_count) {
		const struct mw_merge_entry *entry = &merge->ready[merge->ready_at++];

		merge->source = entry->source;
		if (__builtin_expect(deliver_matching(merge, entry, ret) != 0, 1) ||
		    deliver_checked(merge, entry, ret) || deliver_copy(merge, entry, ret))
			return 1;
	}
	return 0;
}
