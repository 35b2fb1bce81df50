// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Slots: a window of open slots, a queue of closed ones, and one slot for parts that came
 * late. Entries get their processes when the slot is taken by the caller: by then the
 * tracker has seen all changes up to the end of the slot.
 */
#include <memwatch/slots.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "account/rdt-baseline.h"
#include "base/record.h"
#include "account/slot-table.h"
#include "base/timemath.h"
#include "base/value.h"

#define WINDOW_MAX  4096
#define SLOT_MIN_NS 1000ULL
#define WAITING_MAX 1024

/*
 * How long the tracker keeps assignments after their end: dirty cache lines of a process may
 * be written back, and counted, long after its exit.
 */
#define RETAIN_NS (60 * MW_NSEC_PER_SEC)

/**
 * struct slot - a slot that is open, closed or not in use
 * @next: of a closed slot: the next in the queue; of one not in use: the next spare one
 * @begin_ns: first nanosecond
 * @end_ns: first nanosecond after it
 * @lost: records that were lost in it
 * @flags: MEMWATCH_SLOT_*
 * @table: the entries
 */
struct slot {
	struct slot *next;
	uint64_t begin_ns;
	uint64_t end_ns;
	uint64_t lost;
	uint32_t flags;
	struct mw_slot_table table;
};

/**
 * struct memwatch_slots - the aggregator
 * @ctx: a reference
 * @tracker: a reference
 * @opts: options, with defaults filled in
 * @rdt: the last RDT readings
 * @open: slot number i is at i % @nr_open; NULL if it has no entries
 * @nr_open: length of @open
 * @first: number of the oldest open slot
 * @newest: number of the slot that the stream has reached
 * @started: there was a record, so that @first and @newest are valid
 * @late: parts for slots that are closed; NULL if there are none
 * @closed: queue of closed slots
 * @closed_end: where the next closed slot is linked
 * @nr_closed: length of the queue
 * @given: the slot that the caller has
 * @spare: slots that are not in use; their memory is used again
 * @slot: what the caller sees of @given
 * @stats: statistics
 */
struct memwatch_slots {
	struct memwatch_ctx *ctx;
	struct memwatch_tracker *tracker;
	struct memwatch_slots_opts opts;
	struct mw_rdt_baseline *rdt;
	struct slot **open;
	uint32_t nr_open;
	uint64_t first;
	uint64_t newest;
	bool started;
	struct slot *late;
	struct slot *closed, **closed_end;
	uint32_t nr_closed;
	struct slot *given;
	struct slot *spare;
	struct memwatch_slot slot;
	struct memwatch_slots_stats stats;
};

static void free_slots(struct slot *slot)
{
	while (slot) {
		struct slot *next = slot->next;

		mw_slot_table_free(&slot->table);
		free(slot);
		slot = next;
	}
}

struct memwatch_slots *memwatch_slots_unref(struct memwatch_slots *slots)
{
	if (!slots)
		return NULL;
	for (uint32_t i = 0; slots->open && i < slots->nr_open; i++)
		free_slots(slots->open[i]);
	free(slots->open);
	free_slots(slots->late);
	free_slots(slots->closed);
	free_slots(slots->given);
	free_slots(slots->spare);
	mw_rdt_baseline_free(slots->rdt);
	memwatch_tracker_unref(slots->tracker);
	memwatch_ctx_unref(slots->ctx);
	free(slots);
	return NULL;
}

static int slots_init(struct memwatch_slots *slots, struct memwatch_tracker *tracker)
{
	slots->nr_open = slots->opts.window + 1;
	slots->open = calloc(slots->nr_open, sizeof(*slots->open));
	if (!slots->open || mw_rdt_baseline_new(&slots->rdt))
		return -ENOMEM;
	if (!tracker)
		return memwatch_tracker_new(slots->ctx, NULL, &slots->tracker);
	slots->tracker = memwatch_tracker_ref(tracker);
	return 0;
}

int memwatch_slots_new(struct memwatch_ctx *ctx, struct memwatch_tracker *tracker,
		       const struct memwatch_slots_opts *opts, struct memwatch_slots **ret)
{
	struct memwatch_slots_opts full;
	struct memwatch_slots *slots;
	int err;

	err = mw_opts_copy(ctx, &full, sizeof(full), opts);
	if (err)
		return err;
	if (!full.window)
		full.window = MEMWATCH_SLOT_WINDOW_DEFAULT;
	if (!full.slot_ns)
		full.slot_ns = MEMWATCH_SLOT_DEFAULT_NS;
	if (full.window > WINDOW_MAX || full.slot_ns < SLOT_MIN_NS)
		return mw_fail(ctx, -EINVAL, "slots: window is at most %u, slot_ns at least %llu",
			       WINDOW_MAX, SLOT_MIN_NS);
	if (full.flags & ~(MEMWATCH_SLOTS_PER_CPU | MEMWATCH_SLOTS_ESTIMATE))
		return mw_fail(ctx, -EINVAL, "slots: unknown flags: %#x", (unsigned int)full.flags);
	slots = calloc(1, sizeof(*slots));
	if (!slots)
		return mw_fail_memory(ctx, "slots");
	slots->ctx = memwatch_ctx_ref(ctx);
	slots->opts = full;
	slots->closed_end = &slots->closed;
	err = slots_init(slots, tracker);
	if (err) {
		memwatch_slots_unref(slots);
		return mw_fail_memory(ctx, "slots");
	}
	*ret = slots;
	return 0;
}

struct memwatch_tracker *memwatch_slots_tracker(struct memwatch_slots *slots)
{
	return slots->tracker;
}

/* ---------------------------------------------------- opening and closing */

static int obtain_slot(struct memwatch_slots *slots, struct slot **place, uint64_t begin_ns,
		       uint64_t end_ns, uint32_t flags)
{
	struct slot *slot = *place;

	if (slot) {
		/* The late slot spans all its parts. */
		slot->begin_ns = mw_min_u64(slot->begin_ns, begin_ns);
		slot->end_ns = mw_max_u64(slot->end_ns, end_ns);
		return 0;
	}
	slot = slots->spare;
	if (slot)
		slots->spare = slot->next;
	else
		slot = calloc(1, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	slot->next = NULL;
	slot->begin_ns = begin_ns;
	slot->end_ns = end_ns;
	slot->lost = 0;
	slot->flags = flags;
	*place = slot;
	return 0;
}

static void recycle_slot(struct memwatch_slots *slots, struct slot *slot)
{
	if (!slot)
		return;
	mw_slot_table_clear(&slot->table);
	slot->next = slots->spare;
	slots->spare = slot;
}

static void close_slot(struct memwatch_slots *slots, struct slot **place)
{
	struct slot *slot = *place;

	if (!slot)
		return;
	*place = NULL;
	mw_slot_table_sort(&slot->table);
	*slots->closed_end = slot;
	slots->closed_end = &slot->next;
	slots->nr_closed++;
	if (!(slot->flags & MEMWATCH_SLOT_LATE))
		slots->stats.slots++;
}

/* Closes all slots before number @first, and the late slot, which comes before them. */
static void close_before(struct memwatch_slots *slots, uint64_t first)
{
	uint64_t end = mw_min_u64(first, mw_add_sat(slots->first, slots->nr_open));

	if (first <= slots->first)
		return;
	close_slot(slots, &slots->late);
	for (uint64_t i = slots->first; i < end; i++)
		close_slot(slots, &slots->open[i % slots->nr_open]);
	slots->first = first;
}

static void reach_time(struct memwatch_slots *slots, uint64_t time_ns)
{
	uint64_t slot = time_ns / slots->opts.slot_ns;

	if (!slots->started) {
		slots->started = true;
		slots->newest = slot;
		slots->first = mw_sub_sat(slot, slots->opts.window);
	}
	if (slot > slots->newest) {
		slots->newest = slot;
		close_before(slots, mw_sub_sat(slot, slots->opts.window));
	}
}

/* ------------------------------------------------------------- splitting */

/* A part of an interval: its slot, and its end as an offset in the interval. */
struct part {
	struct slot *slot;
	uint64_t end_offset;
	bool late;
};

/* An interval that is split over slots; what lies before @offset has been given out. */
struct split {
	uint64_t begin_ns;
	uint64_t length;
	uint64_t offset;
	bool done;
};

static void split_start(struct split *split, uint64_t begin_ns, uint64_t end_ns)
{
	*split = (struct split){ .begin_ns = begin_ns, .length = end_ns - begin_ns };
}

/*
 * Finds the next part. Returns 1, 0 at the end, or -ENOMEM. All that lies before the open
 * slots is one part, so there is at most one part more than there are open slots.
 */
static int split_next(struct memwatch_slots *slots, struct split *split, struct part *ret)
{
	uint64_t slot_ns = slots->opts.slot_ns;
	uint64_t window_ns = mw_mul_sat(slots->first, slot_ns);
	uint64_t at = split->begin_ns + split->offset;
	uint64_t end = split->begin_ns + split->length;
	uint64_t begin_slot, end_slot;
	struct slot **place;

	if (split->done)
		return 0;
	ret->late = at < window_ns;
	if (ret->late) {
		place = &slots->late;
		begin_slot = at;
		end_slot = mw_min_u64(mw_max_u64(end, at + 1), window_ns);
	} else {
		uint64_t slot = at / slot_ns;

		place = &slots->open[slot % slots->nr_open];
		begin_slot = slot * slot_ns;
		end_slot = mw_add_sat(begin_slot, slot_ns);
	}
	if (obtain_slot(slots, place, begin_slot, end_slot, ret->late ? MEMWATCH_SLOT_LATE : 0))
		return -ENOMEM;
	ret->slot = *place;
	split->offset = mw_min_u64(end_slot, end) - split->begin_ns;
	split->done = split->offset >= split->length;
	ret->end_offset = split->offset;
	return 1;
}

/* The share of @value in a part. The shares of all parts add up to @value exactly. */
static uint64_t value_share(uint64_t value, const struct split *split, uint64_t from, uint64_t to)
{
	if (!split->length)
		return value;
	return mw_share(value, to, split->length) - mw_share(value, from, split->length);
}

/* --------------------------------------------------------------- records */

static int feed_sample(struct memwatch_slots *slots, const struct memwatch_record_sample *sample)
{
	bool per_cpu = slots->opts.flags & MEMWATCH_SLOTS_PER_CPU;
	uint32_t cpu = per_cpu ? sample->h.cpu : MEMWATCH_CPU_ANY;
	struct memwatch_slot_entry *entry;
	uint64_t from = 0;
	struct split split;
	struct part part;
	uint32_t parts = 0;
	bool late = false;
	int err;

	split_start(&split, sample->begin_ns, sample->h.time_ns);
	while ((err = split_next(slots, &split, &part)) > 0) {
		uint64_t run_ns = value_share(sample->run_ns, &split, from, part.end_offset);

		if (mw_slot_table_obtain(&part.slot->table, sample->rmid, sample->generation, cpu,
					 &entry))
			return -ENOMEM;
		entry->samples++;
		entry->run_ns = mw_add_sat(entry->run_ns, run_ns);
		for (int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
			memwatch_value_add(&entry->counter[i],
					   value_share(MEMWATCH_SAMPLE_COUNTER(sample, i), &split,
						       from, part.end_offset),
					   MEMWATCH_SAMPLE_STATUS(sample, i));
		if (part.late)
			slots->stats.late_run_ns = mw_add_sat(slots->stats.late_run_ns, run_ns);
		late |= part.late;
		from = part.end_offset;
		parts++;
	}
	slots->stats.samples++;
	slots->stats.late += late;
	slots->stats.split += parts > 1;
	return err;
}

static int add_traffic(struct memwatch_slots *slots, const struct memwatch_record_rdt *rdt,
		       unsigned int event, const struct mw_rdt_delta *delta, bool *late)
{
	struct memwatch_slot_entry *entry;
	uint64_t from = 0;
	struct split split;
	struct part part;
	int err;

	if (delta->repeated[event])
		return 0;
	split_start(&split, delta->begin_ns[event], delta->end_ns);
	while ((err = split_next(slots, &split, &part)) > 0) {
		if (mw_slot_table_obtain(&part.slot->table, rdt->rmid, rdt->generation,
					 MEMWATCH_CPU_ANY, &entry))
			return -ENOMEM;
		memwatch_value_add(&entry->rdt[event],
				   value_share(delta->value[event], &split, from, part.end_offset),
				   delta->status[event]);
		*late |= part.late;
		from = part.end_offset;
	}
	return err;
}

static int add_level(struct memwatch_slots *slots, const struct memwatch_record_rdt *rdt,
		     const struct mw_rdt_delta *delta, bool *late)
{
	struct memwatch_slot_entry *entry;
	struct memwatch_value *sum;
	struct split split;
	struct part part;
	int err;

	split_start(&split, delta->end_ns, delta->end_ns);
	err = split_next(slots, &split, &part);
	if (err < 0)
		return err;
	if (mw_slot_table_obtain(&part.slot->table, rdt->rmid, rdt->generation, MEMWATCH_CPU_ANY,
				 &entry))
		return -ENOMEM;
	sum = &entry->rdt[MEMWATCH_RDT_OCCUPANCY];
	if (!part.late)
		sum->value = mw_sub_sat(sum->value, delta->replaced);
	memwatch_value_add(sum, delta->value[MEMWATCH_RDT_OCCUPANCY],
			   delta->status[MEMWATCH_RDT_OCCUPANCY]);
	*late |= part.late;
	return 0;
}

/* The residual occupancy counts in the slot in which it is reported. */
static int add_residue(struct memwatch_slots *slots, const struct memwatch_record_rdt *rdt)
{
	struct memwatch_slot_entry *entry;
	struct split split;
	struct part part;
	uint64_t bytes;
	int err;

	err = mw_rdt_baseline_residue(slots->rdt, rdt, &bytes);
	if (err <= 0)
		return err;
	split_start(&split, rdt->h.time_ns, rdt->h.time_ns);
	err = split_next(slots, &split, &part);
	if (err < 0)
		return err;
	if (mw_slot_table_obtain(&part.slot->table, rdt->rmid, rdt->generation, MEMWATCH_CPU_ANY,
				 &entry))
		return -ENOMEM;
	memwatch_value_add(&entry->residue, bytes, MEMWATCH_STATUS_OK);
	slots->stats.late += part.late;
	return 0;
}

static int feed_rdt(struct memwatch_slots *slots, const struct memwatch_record_rdt *rdt)
{
	uint64_t taken_ns = mw_sub_sat(rdt->h.time_ns, rdt->age_ns);
	struct mw_rdt_delta delta;
	bool late = false;
	int err;

	err = add_residue(slots, rdt);
	if (err || rdt->status[MEMWATCH_RDT_OCCUPANCY] == MEMWATCH_STATUS_FIRST)
		return err;
	err = mw_rdt_baseline_update(slots->rdt, rdt, taken_ns / slots->opts.slot_ns, &delta);
	err = err ? err : add_level(slots, rdt, &delta, &late);
	err = err ? err : add_traffic(slots, rdt, MEMWATCH_RDT_MBM_TOTAL, &delta, &late);
	err = err ? err : add_traffic(slots, rdt, MEMWATCH_RDT_MBM_LOCAL, &delta, &late);
	slots->stats.late += late;
	return err;
}

static int feed_lost(struct memwatch_slots *slots, const struct memwatch_record_lost *lost)
{
	struct split split;
	struct part part;
	int err;

	slots->stats.lost = mw_add_sat(slots->stats.lost, lost->count);
	split_start(&split, lost->h.time_ns, lost->h.time_ns);
	err = split_next(slots, &split, &part);
	if (err < 0)
		return err;
	part.slot->lost = mw_add_sat(part.slot->lost, lost->count);
	return 0;
}

static int feed_rmid(struct memwatch_slots *slots, const struct memwatch_record_header *record)
{
	const struct memwatch_record_rmid *r = (const struct memwatch_record_rmid *)record;
	int err = memwatch_tracker_feed(slots->tracker, record);

	if (err < 0)
		return err;
	if (record->type == MEMWATCH_RECORD_RMID_ALLOC)
		return mw_rdt_baseline_born(slots->rdt, r->rmid, r->generation, r->alloc_time_ns);
	return 0;
}

static int feed_record(struct memwatch_slots *slots, const struct memwatch_record_header *record)
{
	switch (record->type) {
	case MEMWATCH_RECORD_SAMPLE:
		return feed_sample(slots, (const struct memwatch_record_sample *)record);
	case MEMWATCH_RECORD_RDT:
		return feed_rdt(slots, (const struct memwatch_record_rdt *)record);
	case MEMWATCH_RECORD_LOST:
		return feed_lost(slots, (const struct memwatch_record_lost *)record);
	case MEMWATCH_RECORD_RMID_ALLOC:
	case MEMWATCH_RECORD_RMID_EXISTING:
	case MEMWATCH_RECORD_RMID_EXEC:
	case MEMWATCH_RECORD_RMID_FREE:
		return feed_rmid(slots, record);
	default:
		return 0;
	}
}

int memwatch_slots_feed(struct memwatch_slots *slots, const struct memwatch_record_header *record)
{
	const struct memwatch_record_sample *sample = (const struct memwatch_record_sample *)record;
	bool valid = mw_record_valid(record, record->size);
	int err;

	recycle_slot(slots, slots->given);
	slots->given = NULL;
	if (slots->nr_closed >= WAITING_MAX)
		return mw_fail(slots->ctx, -ENOBUFS,
			       "slots: %u closed slots wait; call memwatch_slots_next()",
			       slots->nr_closed);
	if (!valid ||
	    (record->type == MEMWATCH_RECORD_SAMPLE && sample->begin_ns > record->time_ns)) {
		slots->stats.invalid++;
		return mw_fail(slots->ctx, -EINVAL, "slots: a %s record %s",
			       memwatch_record_name(record->type),
			       valid ? "ends before it begins" : "has an invalid size");
	}
	reach_time(slots, record->time_ns);
	err = feed_record(slots, record);
	if (err == -EINVAL)
		slots->stats.invalid++;
	return err < 0 ? err : (int)slots->nr_closed;
}

int memwatch_slots_finish(struct memwatch_slots *slots)
{
	recycle_slot(slots, slots->given);
	slots->given = NULL;
	if (slots->started) {
		close_before(slots, slots->newest + 1);
		close_slot(slots, &slots->late);
	}
	return (int)slots->nr_closed;
}

/* ---------------------------------------------------------------- taking */

static void name_entries(struct memwatch_slots *slots, struct slot *slot)
{
	for (uint32_t i = 0; i < slot->table.count; i++) {
		struct memwatch_slot_entry *entry = &slot->table.entries[i];

		if (entry->rmid == MEMWATCH_RMID_UNASSIGNED)
			continue;
		if (memwatch_tracker_lookup(slots->tracker, entry->rmid, entry->generation,
					    &entry->process))
			slots->stats.unknown++;
	}
}

static void estimate_traffic(struct slot *slot)
{
	for (uint32_t i = 0; i < slot->table.count; i++) {
		struct memwatch_slot_entry *entry = &slot->table.entries[i];
		const struct memwatch_value *misses = &entry->counter[MEMWATCH_COUNTER_LLC_MISSES];
		struct memwatch_value *total = &entry->rdt[MEMWATCH_RDT_MBM_TOTAL];

		if (!total->parts && misses->parts && mw_status_has_number(misses->status))
			memwatch_value_add(total, mw_mul_sat(misses->value, MEMWATCH_LINE_BYTES),
					   MEMWATCH_STATUS_ESTIMATED);
	}
}

int memwatch_slots_next(struct memwatch_slots *slots, const struct memwatch_slot **ret)
{
	struct slot *slot = slots->closed;
	int err;

	recycle_slot(slots, slots->given);
	slots->given = NULL;
	if (!slot)
		return 0;

	/* The changes up to the end of this slot take effect. */
	err = memwatch_tracker_advance(slots->tracker, slot->end_ns - 1);
	if (err < 0)
		return err;
	if (!(slot->flags & MEMWATCH_SLOT_LATE))
		memwatch_tracker_retire(slots->tracker, mw_sub_sat(slot->begin_ns, RETAIN_NS));

	slots->closed = slot->next;
	if (!slots->closed)
		slots->closed_end = &slots->closed;
	slots->nr_closed--;
	slot->next = NULL;
	slots->given = slot;
	name_entries(slots, slot);
	if (slots->opts.flags & MEMWATCH_SLOTS_ESTIMATE)
		estimate_traffic(slot);
	slots->slot = (struct memwatch_slot){
		.begin_ns = slot->begin_ns,
		.end_ns = slot->end_ns,
		.flags = slot->flags,
		.nr_entries = slot->table.count,
		.entries = slot->table.entries,
		.lost = slot->lost,
	};
	*ret = &slots->slot;
	return 1;
}

int memwatch_slots_stats(const struct memwatch_slots *slots, struct memwatch_slots_stats *ret)
{
	return mw_opts_export(ret, &slots->stats, sizeof(slots->stats));
}
