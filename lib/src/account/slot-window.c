// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Open slots, closed slots and late ones.
 */
#include "account/slot-window.h"

#include <errno.h>
#include <stdlib.h>

#include "base/timemath.h"

/* The memory of larger tables is not kept for later slots. */
#define SPARE_ENTRIES 1024U

int mw_slot_window_init(struct mw_slot_window *window, uint64_t slot_ns, uint32_t slots,
			uint32_t entries_max, uint64_t from_ns, uint64_t to_ns)
{
	*window = (struct mw_slot_window){
		.slot_ns = slot_ns,
		.window = slots,
		.nr_open = slots + 1,
		.entries_max = entries_max,
		.border = { from_ns, to_ns },
	};
	window->closed_end = &window->closed;
	window->open = calloc(window->nr_open, sizeof(*window->open));
	return window->open ? 0 : -ENOMEM;
}

static void free_slots(struct mw_slot *slot)
{
	while (slot) {
		struct mw_slot *next = slot->next;

		mw_slot_table_free(&slot->table);
		free(slot);
		slot = next;
	}
}

void mw_slot_window_uninit(struct mw_slot_window *window)
{
	for (uint32_t i = 0; window->open && i < window->nr_open; i++)
		free_slots(window->open[i]);
	free(window->open);
	for (int i = 0; i < 3; i++)
		free_slots(window->late[i]);
	free_slots(window->closed);
	free_slots(window->spare);
	*window = (struct mw_slot_window){ 0 };
}

/* ---------------------------------------------------- opening and closing */

static struct mw_slot *obtain_spare(struct mw_slot_window *window)
{
	struct mw_slot *slot = window->spare;

	if (slot) {
		window->spare = slot->next;
		return slot;
	}
	slot = calloc(1, sizeof(*slot));
	if (slot)
		mw_slot_table_init(&slot->table);
	return slot;
}

static int obtain_slot(struct mw_slot_window *window, struct mw_slot **place, uint64_t begin_ns,
		       uint64_t end_ns, uint32_t flags)
{
	struct mw_slot *slot = *place;

	if (slot) {
		/* The late slot spans all its parts. */
		slot->begin_ns = mw_min_u64(slot->begin_ns, begin_ns);
		slot->end_ns = mw_max_u64(slot->end_ns, end_ns);
		return 0;
	}
	slot = obtain_spare(window);
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

void mw_slot_window_recycle(struct mw_slot_window *window, struct mw_slot *slot)
{
	if (!slot)
		return;
	window->entries -= slot->table.count - slot->table.has_other;
	if (slot->table.capacity > SPARE_ENTRIES)
		mw_slot_table_free(&slot->table);
	mw_slot_table_clear(&slot->table);
	slot->next = window->spare;
	window->spare = slot;
}

static void close_slot(struct mw_slot_window *window, struct mw_slot **place)
{
	struct mw_slot *slot = *place;

	if (!slot)
		return;
	*place = NULL;
	mw_slot_table_sort(&slot->table);
	*window->closed_end = slot;
	window->closed_end = &slot->next;
	window->nr_closed++;
	if (!(slot->flags & MEMWATCH_SLOT_LATE))
		window->nr_slots++;
}

static void close_late(struct mw_slot_window *window)
{
	for (int i = 0; i < 3; i++)
		close_slot(window, &window->late[i]);
}

/* Closes all slots before number @first, and the late slots, which come before them. */
static void close_before(struct mw_slot_window *window, uint64_t first)
{
	uint64_t end = mw_min_u64(first, mw_add_sat(window->first, window->nr_open));

	if (first <= window->first)
		return;
	close_late(window);
	for (uint64_t i = window->first; i < end; i++)
		close_slot(window, &window->open[i % window->nr_open]);
	window->first = first;
}

void mw_slot_window_reach(struct mw_slot_window *window, uint64_t time_ns)
{
	uint64_t slot = time_ns / window->slot_ns;

	if (!window->started) {
		window->started = true;
		window->newest = slot;
		window->first = mw_sub_sat(slot, window->window);
	}
	if (slot > window->newest) {
		window->newest = slot;
		close_before(window, mw_sub_sat(slot, window->window));
	}
}

bool mw_slot_window_has_late(const struct mw_slot_window *window)
{
	return window->late[0] || window->late[1] || window->late[2];
}

void mw_slot_window_close_all(struct mw_slot_window *window)
{
	if (!window->started)
		return;
	close_before(window, window->newest + 1);
	close_late(window);
}

struct mw_slot *mw_slot_window_take(struct mw_slot_window *window)
{
	struct mw_slot *slot = window->closed;

	window->closed = slot->next;
	if (!window->closed)
		window->closed_end = &window->closed;
	window->nr_closed--;
	slot->next = NULL;
	return slot;
}

/* ---------------------------------------------------------------- entries */

int mw_slot_window_entry(struct mw_slot_window *window, struct mw_slot *slot, uint32_t rmid,
			 uint32_t generation, uint32_t cpu, struct mw_slot_entry **ret)
{
	uint32_t before = slot->table.count;
	bool full = window->entries >= window->entries_max;
	int err;

	/* A record may name this RMID; its measurements belong to no other entry. */
	if (rmid == MEMWATCH_RMID_OTHER && !generation)
		return mw_slot_table_obtain_other(&slot->table, ret);
	err = mw_slot_table_obtain(&slot->table, rmid, generation, cpu, !full, ret);
	if (err == -ENOSPC) {
		window->nr_other++;
		return mw_slot_table_obtain_other(&slot->table, ret);
	}
	window->entries += slot->table.count - before;
	return err;
}

/* ------------------------------------------------------------- splitting */

void mw_slot_split_start(struct mw_slot_split *split, uint64_t begin_ns, uint64_t end_ns)
{
	*split = (struct mw_slot_split){ .begin_ns = begin_ns, .length = end_ns - begin_ns };
}

/* The late slot for the time @at; sets *@end to where it ends at the latest. */
static struct mw_slot **find_late(struct mw_slot_window *window, uint64_t at, uint64_t *end)
{
	int zone = 0;

	*end = mw_mul_sat(window->first, window->slot_ns);
	while (zone < 2 && at >= window->border[zone])
		zone++;
	if (zone < 2)
		*end = mw_min_u64(*end, window->border[zone]);
	return &window->late[zone];
}

int mw_slot_split_next(struct mw_slot_window *window, struct mw_slot_split *split,
		       struct mw_slot_part *ret)
{
	uint64_t at = split->begin_ns + split->offset;
	uint64_t end = split->begin_ns + split->length;
	uint64_t number = at / window->slot_ns;
	uint64_t begin_slot, end_slot;
	struct mw_slot **place;

	if (split->done)
		return 0;
	/* The numbers are compared, because the end of the last slot before 2^64 ns overflows. */
	ret->late = number < window->first;
	if (ret->late) {
		place = find_late(window, at, &end_slot);
		begin_slot = at;
		end_slot = mw_min_u64(mw_max_u64(end, at + 1), end_slot);
	} else {
		place = &window->open[number % window->nr_open];
		begin_slot = number * window->slot_ns;
		end_slot = mw_add_sat(begin_slot, window->slot_ns);
	}
	if (obtain_slot(window, place, begin_slot, end_slot, ret->late ? MEMWATCH_SLOT_LATE : 0))
		return -ENOMEM;
	ret->slot = *place;
	split->offset = mw_min_u64(end_slot, end) - split->begin_ns;
	split->done = split->offset >= split->length;
	ret->end_offset = split->offset;
	return 1;
}

uint64_t mw_slot_split_share(uint64_t value, const struct mw_slot_split *split, uint64_t from,
			     uint64_t to)
{
	if (!split->length)
		return value;
	return mw_share(value, to, split->length) - mw_share(value, from, split->length);
}
