// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which level holds for which RMID and row.
 */
#include "account/levels.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/timemath.h"
#include "base/value.h"

void mw_levels_init(struct mw_levels *levels, uint32_t holders_max)
{
	*levels = (struct mw_levels){ .holders_max = holders_max };
	mw_index_init(&levels->index);
}

void mw_levels_uninit(struct mw_levels *levels)
{
	free(levels->rows);
	free(levels->holders);
	free(levels->events);
	mw_index_free(&levels->index);
}

int mw_levels_add_row(struct mw_levels *levels)
{
	if (mw_array_reserve(levels->rows, levels->max_rows, levels->nr_rows + 1))
		return -ENOMEM;
	levels->rows[levels->nr_rows++] = (struct mw_occupancy){ 0 };
	return 0;
}

/* --------------------------------------------------------------- holders */

static struct mw_holder *find_holder(const struct mw_levels *levels, uint32_t rmid)
{
	uint32_t hash, at, number;

	if (!levels->nr_holders)
		return NULL;
	hash = mw_index_hash(&levels->index, rmid, 0);
	mw_index_for_each (&levels->index, hash, &at, number)
		if (levels->holders[number].rmid == rmid)
			return &levels->holders[number];
	return NULL;
}

bool mw_levels_hold(const struct mw_levels *levels, uint32_t rmid, uint32_t generation)
{
	const struct mw_holder *holder = find_holder(levels, rmid);

	return holder && holder->generation == generation && holder->holds;
}

/* Returns 0, -ENOSPC or -ENOMEM. */
static int obtain_holder(struct mw_levels *levels, uint32_t rmid, uint32_t generation,
			 struct mw_holder **ret)
{
	*ret = find_holder(levels, rmid);
	if (*ret)
		return 0;
	if (levels->nr_holders >= levels->holders_max)
		return -ENOSPC;
	if (mw_array_reserve(levels->holders, levels->max_holders, levels->nr_holders + 1) ||
	    mw_index_insert(&levels->index, mw_index_hash(&levels->index, rmid, 0),
			    levels->nr_holders))
		return -ENOMEM;
	*ret = &levels->holders[levels->nr_holders++];
	**ret = (struct mw_holder){ .rmid = rmid, .generation = generation, .row = MW_NO_ROW };
	return 0;
}

static struct mw_occupancy *row_of(struct mw_levels *levels, uint32_t row)
{
	return row == MW_NO_ROW ? NULL : &levels->rows[row];
}

static uint32_t holder_row(const struct mw_levels *levels, const struct mw_holder *holder)
{
	return holder->epoch == levels->epoch ? holder->row : MW_NO_ROW;
}

static void set_holder_row(const struct mw_levels *levels, struct mw_holder *holder, uint32_t row)
{
	holder->row = row;
	holder->epoch = levels->epoch;
}

/* Since when a level counts for its row. */
static uint64_t row_since(const struct mw_levels *levels, const struct mw_holder *holder)
{
	return mw_max_u64(holder->since_ns, levels->begin_ns);
}

static void note_status(struct mw_occupancy *occupancy, uint8_t status)
{
	if (occupancy)
		memwatch_value_add(&occupancy->readings, 0, status);
}

static void begin_hold(struct mw_levels *levels, struct mw_holder *holder, uint64_t from_ns,
		       unsigned __int128 area)
{
	struct mw_occupancy *row = row_of(levels, holder_row(levels, holder));

	holder->holds = true;
	mw_occupancy_hold(&levels->total, holder->bytes, from_ns, holder->since_ns, area);
	if (row)
		mw_occupancy_hold(row, holder->bytes, from_ns, row_since(levels, holder), area);
}

static void end_hold(struct mw_levels *levels, struct mw_holder *holder, uint64_t time_ns)
{
	struct mw_occupancy *row = row_of(levels, holder_row(levels, holder));

	if (!holder->holds)
		return;
	time_ns = mw_max_u64(time_ns, row_since(levels, holder));
	holder->holds = false;
	mw_occupancy_release(&levels->total, holder->bytes, holder->since_ns, time_ns);
	if (row)
		mw_occupancy_release(row, holder->bytes, row_since(levels, holder), time_ns);
}

/* An entry shows the row of an RMID. What holds for the RMID holds for the row. */
static void attach_holder(struct mw_levels *levels, struct mw_holder *holder, uint32_t row,
			  uint64_t time_ns)
{
	uint64_t since_ns = row_since(levels, holder);

	if (!holder->holds) {
		set_holder_row(levels, holder, row);
		return;
	}
	/* The process of the RMID was not known before: its first row ends here. */
	if (holder_row(levels, holder) != MW_NO_ROW) {
		end_hold(levels, holder, time_ns);
		holder->since_ns = mw_max_u64(time_ns, holder->since_ns);
		set_holder_row(levels, holder, row);
		begin_hold(levels, holder, holder->since_ns, 0);
	} else {
		set_holder_row(levels, holder, row);
		mw_occupancy_hold(&levels->rows[row], holder->bytes, since_ns, since_ns, 0);
	}
	note_status(&levels->rows[row], holder->status);
}

void mw_levels_restart(struct mw_levels *levels, uint64_t begin_ns)
{
	mw_occupancy_restart(&levels->total, begin_ns);
	levels->nr_rows = 0;
	levels->begin_ns = begin_ns;
	levels->epoch++;
}

/* ---------------------------------------------------------------- events */

void mw_levels_begin(struct mw_levels *levels)
{
	levels->nr_events = 0;
}

static int add_event(struct mw_levels *levels, uint64_t time_ns, uint32_t entry, bool is_end,
		     uint32_t row)
{
	if (mw_array_reserve(levels->events, levels->max_events, levels->nr_events + 1))
		return -ENOMEM;
	levels->events[levels->nr_events++] = (struct mw_level_event){
		.time_ns = time_ns, .entry = entry, .is_end = is_end, .row = row
	};
	return 0;
}

int mw_levels_note(struct mw_levels *levels, const struct mw_slot_given *slot, uint32_t number,
		   uint32_t row)
{
	const struct mw_slot_entry *entry = &slot->entries[number];
	const struct memwatch_process *process = entry->seen.process;
	struct mw_holder *holder = find_holder(levels, entry->seen.rmid);
	bool same = holder && holder->generation == entry->seen.generation;

	if (same && row != MW_NO_ROW && holder_row(levels, holder) != row)
		attach_holder(levels, holder, row, slot->seen.begin_ns);
	if ((same || entry->level.read) && process && process->flags & MEMWATCH_PROCESS_FREED &&
	    !(same && holder->ended) && add_event(levels, process->free_time_ns, number, true, row))
		return -ENOMEM;
	if (!entry->level.read)
		return 0;
	return add_event(levels, entry->level.first_ns, number, false, row);
}

static int compare_events(const void *a, const void *b)
{
	const struct mw_level_event *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->entry != y->entry)
		return x->entry < y->entry ? -1 : 1;
	return (int)x->is_end - (int)y->is_end;
}

/* A level of which it is not known for how long it holds. */
static void hold_in_slot(struct mw_occupancy *occupancy, const struct memwatch_slot *slot,
			 uint64_t bytes)
{
	if (!occupancy)
		return;
	mw_occupancy_hold(occupancy, bytes, slot->begin_ns, slot->begin_ns, 0);
	mw_occupancy_release(occupancy, bytes, slot->begin_ns, slot->end_ns);
}

static void touch_row(struct mw_occupancy *occupancy, uint64_t bytes)
{
	if (occupancy)
		mw_occupancy_touch(occupancy, bytes);
}

static void apply_reading(struct mw_levels *levels, struct mw_holder *holder,
			  const struct mw_slot_level *level, uint32_t row)
{
	/* If this domain has no reading now, what was read of the other ones holds. */
	bool known = mw_status_has_number(level->status) || level->bytes;

	if (holder->ended || level->first_ns < holder->since_ns) {
		/* It comes too late to hold for any time. */
		touch_row(row_of(levels, row), level->bytes);
		return;
	}
	end_hold(levels, holder, level->first_ns);
	set_holder_row(levels, holder, row);
	holder->bytes = level->bytes;
	holder->status = level->status;
	holder->since_ns = level->last_ns;
	begin_hold(levels, holder, level->first_ns, level->area);
	if (!known)
		end_hold(levels, holder, level->last_ns);
}

static int apply_event(struct mw_levels *levels, const struct mw_slot_given *slot,
		       const struct mw_level_event *event)
{
	const struct mw_slot_entry *entry = &slot->entries[event->entry];
	uint32_t generation = entry->seen.generation;
	struct mw_holder *holder;
	int err = -ENOSPC;

	if (!mw_slot_entry_is_other(entry))
		err = obtain_holder(levels, entry->seen.rmid, generation, &holder);
	if (err == -ENOMEM)
		return err;
	if (!event->is_end) {
		note_status(&levels->total, entry->level.status);
		note_status(row_of(levels, event->row), entry->level.status);
	}
	if (err) {
		if (!event->is_end && mw_status_has_number(entry->level.status)) {
			hold_in_slot(&levels->total, &slot->seen, entry->level.bytes);
			hold_in_slot(row_of(levels, event->row), &slot->seen, entry->level.bytes);
		}
		return 0;
	}
	if (generation > holder->generation) {
		/* The record that the earlier generation was freed has been lost. */
		end_hold(levels, holder, event->time_ns);
		holder->generation = generation;
		holder->ended = false;
		holder->row = MW_NO_ROW;
	}
	if (generation < holder->generation) {
		touch_row(row_of(levels, event->row), entry->level.bytes);
	} else if (event->is_end) {
		end_hold(levels, holder, event->time_ns);
		holder->ended = true;
	} else {
		apply_reading(levels, holder, &entry->level, event->row);
	}
	return 0;
}

int mw_levels_apply(struct mw_levels *levels, const struct mw_slot_given *slot)
{
	int err = 0;

	if (levels->nr_events > 1)
		qsort(levels->events, levels->nr_events, sizeof(*levels->events), compare_events);
	for (uint32_t i = 0; i < levels->nr_events && !err; i++)
		err = apply_event(levels, slot, &levels->events[i]);
	return err;
}

int mw_levels_apply_to(struct mw_levels *levels, const struct mw_slot_given *slot, uint32_t row)
{
	struct mw_occupancy before = levels->total, *total = &levels->total, *to;
	uint64_t begin_ns = slot->seen.begin_ns, end_ns = slot->seen.end_ns, known_ns;
	unsigned __int128 area, area_before;
	int err;

	total->max = total->bytes;
	total->readings = (struct memwatch_value){ 0 };
	err = mw_levels_apply(levels, slot);
	to = &levels->rows[row];
	area = mw_occupancy_area(total, end_ns);
	area_before = mw_occupancy_area(&before, begin_ns);
	known_ns = mw_sub_sat(mw_occupancy_known(total, end_ns),
			      mw_occupancy_known(&before, begin_ns));
	/* That an RMID was freed before may be known only now. */
	to->area += area > area_before ? area - area_before : 0;
	to->known_ns += known_ns;
	to->max = mw_max_u64(to->max, total->max);
	if (known_ns && !total->readings.parts)
		memwatch_value_merge(&to->readings, &before.readings);
	memwatch_value_merge(&to->readings, &total->readings);
	total->max = mw_max_u64(total->max, before.max);
	memwatch_value_merge(&total->readings, &before.readings);
	return err;
}
