// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Slots: adds the records to the slots of the window. Entries get their processes when the
 * slot is taken by the caller: by then the tracker has seen all changes up to the end of the
 * slot.
 */
#include <memwatch/slots.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "account/losses.h"
#include "account/rdt-baseline.h"
#include "base/array.h"
#include "base/context.h"
#include "base/record.h"
#include "account/slot-window.h"
#include "base/timemath.h"
#include "base/value.h"

#define WINDOW_MAX	4096
#define SLOT_MIN_NS	1000ULL
#define WAITING_MAX	1024
#define ENTRIES_DEFAULT 262144
#define REPORTED_MAX	4096 /* losses that wait for their slot; further ones are put together */

/*
 * How long the tracker keeps assignments after their end: dirty cache lines of a process may
 * be written back, and counted, long after its exit.
 */
#define RETAIN_NS (60 * MW_NSEC_PER_SEC)

/**
 * struct memwatch_slots - the aggregator
 * @ctx: a reference
 * @tracker: a reference
 * @opts: options, with defaults filled in
 * @start_ns: time of the first record
 * @rdt: the last RDT readings
 * @window: all slots but @given
 * @losses: those that overlap open or later slots, or samples that have not come yet
 * @reported: losses that were not in a slot yet
 * @nr_reported: length of @reported
 * @max_reported: how many fit
 * @given: the slot that the caller has
 * @given_losses: the losses in it
 * @max_given: how many fit
 * @slot: @given as the caller has it
 * @stats: statistics; the window has the others
 */
struct memwatch_slots {
	struct memwatch_ctx *ctx;
	struct memwatch_tracker *tracker;
	struct memwatch_slots_opts opts;
	uint64_t start_ns;
	struct mw_rdt_baseline *rdt;
	struct mw_slot_window window;
	struct mw_losses losses;
	struct memwatch_loss *reported;
	uint32_t nr_reported, max_reported;
	struct mw_slot *given;
	struct memwatch_loss *given_losses;
	uint32_t max_given;
	struct mw_slot_given slot;
	struct memwatch_slots_stats stats;
};

struct memwatch_slots *memwatch_slots_unref(struct memwatch_slots *slots)
{
	if (!slots)
		return NULL;
	mw_slot_window_recycle(&slots->window, slots->given);
	mw_slot_window_uninit(&slots->window);
	mw_rdt_baseline_free(slots->rdt);
	mw_losses_uninit(&slots->losses);
	free(slots->reported);
	free(slots->given_losses);
	memwatch_tracker_unref(slots->tracker);
	memwatch_ctx_unref(slots->ctx);
	free(slots);
	return NULL;
}

static int slots_init(struct memwatch_slots *slots, struct memwatch_tracker *tracker)
{
	const struct memwatch_slots_opts *opts = &slots->opts;

	if (mw_slot_window_init(&slots->window, opts->slot_ns, opts->window, opts->entries_max,
				opts->from_ns, opts->to_ns) ||
	    mw_rdt_baseline_new(&slots->rdt))
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
	if (!full.entries_max)
		full.entries_max = ENTRIES_DEFAULT;
	if (!full.to_ns)
		full.to_ns = MW_TIME_MAX;
	if (full.window > WINDOW_MAX || full.slot_ns < SLOT_MIN_NS)
		return mw_fail(ctx, -EINVAL, "slots: window is at most %u, slot_ns at least %llu",
			       WINDOW_MAX, SLOT_MIN_NS);
	if (full.reserved)
		return mw_fail(ctx, -EINVAL, "slots: the reserved member of the options is not 0");
	if (full.flags & ~(MEMWATCH_SLOTS_PER_CPU | MEMWATCH_SLOTS_ESTIMATE))
		return mw_fail(ctx, -EINVAL, "slots: unknown flags: %#x", (unsigned int)full.flags);
	slots = calloc(1, sizeof(*slots));
	if (!slots)
		return mw_fail_memory(ctx, "slots");
	slots->ctx = memwatch_ctx_ref(ctx);
	slots->opts = full;
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

/* --------------------------------------------------------------- records */

static int feed_sample(struct memwatch_slots *slots, const struct memwatch_record_sample *sample)
{
	bool per_cpu = slots->opts.flags & MEMWATCH_SLOTS_PER_CPU;
	uint32_t cpu = per_cpu ? sample->h.cpu : MEMWATCH_CPU_ANY;
	bool lossy = mw_losses_take_sample(&slots->losses, sample->h.cpu, sample->begin_ns,
					   sample->h.time_ns);
	struct mw_slot_entry *entry;
	uint64_t from = 0;
	struct mw_slot_split split;
	struct mw_slot_part part;
	uint32_t parts = 0;
	bool late = false;
	int err;

	mw_slot_split_start(&split, sample->begin_ns, sample->h.time_ns);
	while ((err = mw_slot_split_next(&slots->window, &split, &part)) > 0) {
		uint64_t run_ns = mw_slot_split_share(sample->run_ns, &split, from,
						      part.end_offset);

		if (mw_slot_window_entry(&slots->window, part.slot, sample->rmid,
					 sample->generation, cpu, &entry))
			return -ENOMEM;
		entry->seen.samples++;
		memwatch_value_add(&entry->seen.cpu_time_ns, run_ns, MEMWATCH_STATUS_OK);
		for (int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
			memwatch_value_add(&entry->counter[i],
					   mw_slot_split_share(MEMWATCH_SAMPLE_COUNTER(sample, i),
							       &split, from, part.end_offset),
					   MEMWATCH_SAMPLE_STATUS(sample, i));
		if (lossy)
			mw_slot_entry_mark_samples(entry);
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
	struct mw_slot_entry *entry;
	uint64_t from = 0;
	struct mw_slot_split split;
	struct mw_slot_part part;
	int err;

	if (delta->repeated[event])
		return 0;
	mw_slot_split_start(&split, delta->begin_ns[event], delta->end_ns);
	while ((err = mw_slot_split_next(&slots->window, &split, &part)) > 0) {
		if (mw_slot_window_entry(&slots->window, part.slot, rdt->rmid, rdt->generation,
					 MEMWATCH_CPU_ANY, &entry))
			return -ENOMEM;
		memwatch_value_add(
			&entry->rdt[event],
			mw_slot_split_share(delta->value[event], &split, from, part.end_offset),
			delta->status[event]);
		*late |= part.late;
		from = part.end_offset;
	}
	return err;
}

/* What summaries weight by time. Readings may be late, and then change nothing between others. */
static void note_level(struct mw_slot_level *level, const struct mw_rdt_delta *delta)
{
	if (!level->read)
		level->first_ns = level->last_ns = delta->end_ns;
	else if (delta->end_ns < level->last_ns)
		return;
	level->area += (unsigned __int128)level->bytes * (delta->end_ns - level->last_ns);
	level->last_ns = delta->end_ns;
	level->bytes = delta->value[MEMWATCH_RDT_OCCUPANCY];
	level->status = delta->status[MEMWATCH_RDT_OCCUPANCY];
	level->read = true;
}

static int add_level(struct memwatch_slots *slots, const struct memwatch_record_rdt *rdt,
		     const struct mw_rdt_delta *delta, bool *late)
{
	struct mw_slot_entry *entry;
	__u8 status = delta->status[MEMWATCH_RDT_OCCUPANCY];
	struct memwatch_value *sum;
	struct mw_slot_split split;
	struct mw_slot_part part;
	int err;

	mw_slot_split_start(&split, delta->end_ns, delta->end_ns);
	err = mw_slot_split_next(&slots->window, &split, &part);
	if (err < 0)
		return err;
	if (mw_slot_window_entry(&slots->window, part.slot, rdt->rmid, rdt->generation,
				 MEMWATCH_CPU_ANY, &entry))
		return -ENOMEM;
	sum = &entry->rdt[MEMWATCH_RDT_OCCUPANCY];
	if (!part.late)
		sum->value = mw_sub_sat(sum->value, delta->replaced);
	/* Of the other domains it is known what they hold. */
	if (delta->value[MEMWATCH_RDT_OCCUPANCY] && !mw_status_has_number(status))
		status = MEMWATCH_STATUS_ESTIMATED;
	memwatch_value_add(sum, delta->value[MEMWATCH_RDT_OCCUPANCY], status);
	note_level(&entry->level, delta);
	*late |= part.late;
	return 0;
}

/* The residual occupancy counts in the slot in which it is reported. */
static int add_residue(struct memwatch_slots *slots, const struct memwatch_record_rdt *rdt)
{
	struct mw_slot_entry *entry;
	struct mw_slot_split split;
	struct mw_slot_part part;
	uint64_t bytes;
	int err;

	err = mw_rdt_baseline_residue(slots->rdt, rdt, &bytes);
	if (err <= 0)
		return err;
	mw_slot_split_start(&split, rdt->h.time_ns, rdt->h.time_ns);
	err = mw_slot_split_next(&slots->window, &split, &part);
	if (err < 0)
		return err;
	if (mw_slot_window_entry(&slots->window, part.slot, rdt->rmid, rdt->generation,
				 MEMWATCH_CPU_ANY, &entry))
		return -ENOMEM;
	memwatch_value_add(&entry->seen.residue, bytes, MEMWATCH_STATUS_OK);
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

/* The loss is given to the caller with the slot in which it begins. */
static int report_loss(struct memwatch_slots *slots, const struct memwatch_loss *loss)
{
	struct memwatch_loss *last;

	if (slots->nr_reported < REPORTED_MAX) {
		if (mw_array_reserve(slots->reported, slots->max_reported, slots->nr_reported + 1))
			return -ENOMEM;
		slots->reported[slots->nr_reported++] = *loss;
		return 0;
	}
	last = &slots->reported[slots->nr_reported - 1];
	last->cpu = MEMWATCH_CPU_ANY;
	last->begin_ns = mw_min_u64(last->begin_ns, loss->begin_ns);
	last->end_ns = mw_max_u64(last->end_ns, loss->end_ns);
	return 0;
}

static int feed_lost(struct memwatch_slots *slots, const struct memwatch_record_lost *lost)
{
	/* In older recordings the record is at the end, and end_ns is when the loss began. */
	struct memwatch_loss loss = {
		.cpu = lost->h.cpu,
		.begin_ns = mw_min_u64(lost->end_ns, lost->h.time_ns),
		.end_ns = mw_max_u64(lost->end_ns, lost->h.time_ns),
	};
	struct mw_slot_split split;
	struct mw_slot_part part;
	int err;

	if (mw_losses_add(&slots->losses, &loss) || report_loss(slots, &loss))
		return -ENOMEM;
	slots->stats.lost = mw_add_sat(slots->stats.lost, lost->count);
	mw_slot_split_start(&split, lost->h.time_ns, lost->h.time_ns);
	err = mw_slot_split_next(&slots->window, &split, &part);
	if (err < 0)
		return err;
	part.slot->lost = mw_add_sat(part.slot->lost, lost->count);
	return 0;
}

/*
 * Its process tells a summary that the last reading of the RMID does not hold any more, and that
 * a later loss does not concern the process.
 */
static int add_end(struct memwatch_slots *slots, const struct memwatch_record_rmid *r)
{
	struct mw_slot_entry *entry;
	struct mw_slot_split split;
	struct mw_slot_part part;
	int err;

	mw_slot_split_start(&split, r->h.time_ns, r->h.time_ns);
	err = mw_slot_split_next(&slots->window, &split, &part);
	if (err < 0)
		return err;
	return mw_slot_window_entry(&slots->window, part.slot, r->rmid, r->generation,
				    MEMWATCH_CPU_ANY, &entry);
}

static int feed_rmid(struct memwatch_slots *slots, const struct memwatch_record_header *record)
{
	const struct memwatch_record_rmid *r = (const struct memwatch_record_rmid *)record;
	int err = memwatch_tracker_feed(slots->tracker, record);

	if (err >= 0 && record->type == MEMWATCH_RECORD_RMID_FREE)
		err = add_end(slots, r);
	/* RDT counts by RMID: there are no readings of a generation of RMID 0. */
	if (err < 0 || r->rmid == MEMWATCH_RMID_UNASSIGNED)
		return err;
	if (record->type == MEMWATCH_RECORD_RMID_ALLOC)
		return mw_rdt_baseline_born(slots->rdt, r->rmid, r->generation, r->alloc_time_ns);
	if (r->alloc_time_ns >= slots->start_ns)
		return mw_rdt_baseline_born_late(slots->rdt, r->rmid, r->generation,
						 r->alloc_time_ns);
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

	mw_slot_window_recycle(&slots->window, slots->given);
	slots->given = NULL;
	if (slots->window.nr_closed >= WAITING_MAX)
		return mw_fail(slots->ctx, -ENOBUFS,
			       "slots: %u closed slots wait; call memwatch_slots_next()",
			       slots->window.nr_closed);
	if (!valid ||
	    (record->type == MEMWATCH_RECORD_SAMPLE && sample->begin_ns > record->time_ns)) {
		slots->stats.invalid++;
		return mw_fail(slots->ctx, -EINVAL, "slots: a %s record %s",
			       memwatch_record_name(record->type),
			       valid ? "ends before it begins" : "has an invalid size");
	}
	if (!slots->window.started)
		slots->start_ns = record->time_ns;
	mw_slot_window_reach(&slots->window, record->time_ns);
	err = feed_record(slots, record);
	if (err == -EINVAL)
		slots->stats.invalid++;
	return err < 0 ? err : (int)slots->window.nr_closed;
}

int memwatch_slots_finish(struct memwatch_slots *slots)
{
	mw_slot_window_recycle(&slots->window, slots->given);
	slots->given = NULL;
	mw_slot_window_close_all(&slots->window);
	return (int)slots->window.nr_closed;
}

/* ---------------------------------------------------------------- taking */

static void name_entries(struct memwatch_slots *slots, struct mw_slot *slot)
{
	for (uint32_t i = 0; i < slot->table.count; i++) {
		struct mw_slot_entry *entry = &slot->table.entries[i];

		if (mw_slot_entry_is_unassigned(entry) || mw_slot_entry_is_other(entry))
			continue;
		if (memwatch_tracker_lookup(slots->tracker, entry->seen.rmid,
					    entry->seen.generation, &entry->seen.process))
			slots->stats.unknown++;
	}
}

static void estimate_traffic(struct mw_slot *slot)
{
	for (uint32_t i = 0; i < slot->table.count; i++) {
		struct mw_slot_entry *entry = &slot->table.entries[i];
		const struct memwatch_value *misses = &entry->counter[MEMWATCH_COUNTER_LLC_MISSES];
		struct memwatch_value *total = &entry->rdt[MEMWATCH_RDT_MBM_TOTAL];

		if (!total->parts && misses->parts && mw_status_has_number(misses->status))
			memwatch_value_add(total, mw_mul_sat(misses->value, MEMWATCH_LINE_BYTES),
					   MEMWATCH_STATUS_ESTIMATED);
	}
}

/* An entry is complete if its process was not there during the loss. */
static bool entry_is_lossy(const struct memwatch_slots *slots, const struct mw_slot *slot,
			   const struct mw_slot_entry *entry)
{
	const struct memwatch_process *process = entry->seen.process;
	uint64_t begin_ns = slot->begin_ns, end_ns = slot->end_ns;

	if (process)
		begin_ns = mw_max_u64(begin_ns, process->alloc_time_ns);
	if (process && process->flags & MEMWATCH_PROCESS_FREED)
		end_ns = mw_min_u64(end_ns, process->free_time_ns);
	return mw_losses_touch(&slots->losses, entry->seen.cpu, begin_ns, end_ns);
}

static void mark_losses(struct memwatch_slots *slots, struct mw_slot *slot)
{
	if (!mw_losses_touch(&slots->losses, MEMWATCH_CPU_ANY, slot->begin_ns, slot->end_ns))
		return;
	slot->flags |= MEMWATCH_SLOT_LOSSY;
	for (uint32_t i = 0; i < slot->table.count; i++) {
		struct mw_slot_entry *entry = &slot->table.entries[i];

		if (entry_is_lossy(slots, slot, entry))
			mw_slot_entry_mark_all(entry);
	}
}

/* Moves the losses that begin before the end of @slot to those that the caller sees. */
static int give_losses(struct memwatch_slots *slots, const struct mw_slot *slot)
{
	uint32_t kept = 0;

	slots->slot.seen.nr_losses = 0;
	if (mw_array_reserve(slots->given_losses, slots->max_given, slots->nr_reported))
		return -ENOMEM;
	for (uint32_t i = 0; i < slots->nr_reported; i++) {
		const struct memwatch_loss *loss = &slots->reported[i];

		if (loss->begin_ns < slot->end_ns)
			slots->given_losses[slots->slot.seen.nr_losses++] = *loss;
		else
			slots->reported[kept++] = *loss;
	}
	slots->nr_reported = kept;
	return 0;
}

/* Nothing older than the open slots will be given any more. */
static void forget_losses(struct memwatch_slots *slots)
{
	const struct mw_slot_window *window = &slots->window;

	if (!mw_slot_window_has_late(window) && !slots->nr_reported)
		mw_losses_forget(&slots->losses, mw_mul_sat(window->first, window->slot_ns));
}

/* The last nanosecond of a slot. The end of the last one before 2^64 ns is not a number. */
static uint64_t last_ns(const struct mw_slot *slot)
{
	return slot->end_ns == MW_TIME_MAX ? MW_TIME_MAX : slot->end_ns - 1;
}

int memwatch_slots_next(struct memwatch_slots *slots, const struct memwatch_slot **ret)
{
	struct mw_slot *slot = slots->window.closed;
	int err;

	mw_slot_window_recycle(&slots->window, slots->given);
	slots->given = NULL;
	if (!slot) {
		forget_losses(slots);
		return 0;
	}

	/* The changes up to the end of this slot take effect. */
	err = memwatch_tracker_advance(slots->tracker, last_ns(slot));
	if (err < 0)
		return err;
	if (!(slot->flags & MEMWATCH_SLOT_LATE))
		memwatch_tracker_retire(slots->tracker, mw_sub_sat(slot->begin_ns, RETAIN_NS));

	if (give_losses(slots, slot))
		return mw_fail_memory(slots->ctx, "slots");
	slots->given = mw_slot_window_take(&slots->window);
	name_entries(slots, slot);
	if (slots->opts.flags & MEMWATCH_SLOTS_ESTIMATE)
		estimate_traffic(slot);
	mark_losses(slots, slot);
	slots->slot = (struct mw_slot_given){
		.seen = {
			.begin_ns = slot->begin_ns,
			.end_ns = slot->end_ns,
			.flags = slot->flags,
			.nr_entries = slot->table.count,
			.lost = slot->lost,
			.nr_losses = slots->slot.seen.nr_losses,
		},
		.entries = slot->table.entries,
		.losses = slots->given_losses,
	};
	*ret = &slots->slot.seen;
	return 1;
}

const struct memwatch_slot_entry *memwatch_slot_entry_at(const struct memwatch_slot *slot,
							 unsigned int index)
{
	return index < slot->nr_entries ? &mw_slot_given_of(slot)->entries[index].seen : NULL;
}

const struct memwatch_loss *memwatch_slot_loss_at(const struct memwatch_slot *slot,
						  unsigned int index)
{
	return index < slot->nr_losses ? &mw_slot_given_of(slot)->losses[index] : NULL;
}

const struct memwatch_value *memwatch_slot_counter_at(const struct memwatch_slot_entry *entry,
						      unsigned int counter)
{
	return counter < MEMWATCH_COUNTER_MAX ? &mw_slot_entry_of(entry)->counter[counter] : NULL;
}

const struct memwatch_value *memwatch_slot_rdt_at(const struct memwatch_slot_entry *entry,
						  unsigned int event)
{
	return event < MEMWATCH_RDT_MAX ? &mw_slot_entry_of(entry)->rdt[event] : NULL;
}

int memwatch_slots_get_stats(const struct memwatch_slots *slots, struct memwatch_slots_stats *ret)
{
	struct memwatch_slots_stats stats = slots->stats;

	stats.slots = slots->window.nr_slots;
	stats.other = slots->window.nr_other;
	return mw_opts_export(ret, &stats, sizeof(stats));
}
