/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The window of open slots, the queue of closed ones, and a slot for parts that came late: three,
 * if a summary is of a range of time, for what is before, in and behind it. Intervals are split
 * over the slots here.
 *
 * All slots together hold a limited number of entries. What finds no place is added to one
 * entry of its slot, that of MEMWATCH_RMID_OTHER, so that sums stay right.
 */
#ifndef MW_SLOT_WINDOW_H
#define MW_SLOT_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "account/slot-table.h"

/**
 * struct mw_slot - a slot that is open, closed or not in use
 * @next: of a closed slot: the next in the queue; of one not in use: the next spare one
 * @begin_ns: first nanosecond
 * @end_ns: first nanosecond after it
 * @lost: records that were lost in it
 * @flags: MEMWATCH_SLOT_*
 * @table: the entries
 */
struct mw_slot {
	struct mw_slot *next;
	uint64_t begin_ns;
	uint64_t end_ns;
	uint64_t lost;
	uint32_t flags;
	struct mw_slot_table table;
};

/**
 * struct mw_slot_window - all slots of an aggregator
 * @slot_ns: length of a slot
 * @window: how many slots before the newest stay open
 * @open: slot number i is at i % @nr_open; NULL if it has no entries
 * @nr_open: length of @open
 * @first: number of the oldest open slot
 * @newest: number of the slot that the stream has reached
 * @started: there was a record, so that @first and @newest are valid
 * @border: where the range begins and ends
 * @late: parts for slots that are closed, before, in and behind the range; NULL if there are none
 * @closed: queue of closed slots
 * @closed_end: where the next closed slot is linked
 * @nr_closed: length of the queue
 * @spare: slots that are not in use; their memory is used again
 * @entries: entries in all slots, without those of MEMWATCH_RMID_OTHER
 * @entries_max: how many there may be
 * @nr_slots: how many slots were closed, without late ones
 * @nr_other: how often an entry of MEMWATCH_RMID_OTHER was used
 */
struct mw_slot_window {
	uint64_t slot_ns;
	uint32_t window;
	struct mw_slot **open;
	uint32_t nr_open;
	uint64_t first;
	uint64_t newest;
	bool started;
	uint64_t border[2];
	struct mw_slot *late[3];
	struct mw_slot *closed, **closed_end;
	uint32_t nr_closed;
	struct mw_slot *spare;
	uint32_t entries;
	uint32_t entries_max;
	uint64_t nr_slots;
	uint64_t nr_other;
};

/* The range is from @from_ns to before @to_ns. Returns 0 or -ENOMEM. */
int mw_slot_window_init(struct mw_slot_window *window, uint64_t slot_ns, uint32_t slots,
			uint32_t entries_max, uint64_t from_ns, uint64_t to_ns);
void mw_slot_window_uninit(struct mw_slot_window *window);

/* The stream has reached a time: closes the slots that leave the window. */
void mw_slot_window_reach(struct mw_slot_window *window, uint64_t time_ns);

/* Whether there is something in a late slot. */
bool mw_slot_window_has_late(const struct mw_slot_window *window);

/* Closes all slots. */
void mw_slot_window_close_all(struct mw_slot_window *window);

/* Takes the first closed slot out of the queue. There is one. */
struct mw_slot *mw_slot_window_take(struct mw_slot_window *window);

/* A slot that was taken, or NULL, is not used any more. */
void mw_slot_window_recycle(struct mw_slot_window *window, struct mw_slot *slot);

/*
 * Finds or adds the entry of a slot. Returns 0 or -ENOMEM; the entry is valid until the next
 * call.
 */
int mw_slot_window_entry(struct mw_slot_window *window, struct mw_slot *slot, uint32_t rmid,
			 uint32_t generation, uint32_t cpu, struct mw_slot_entry **ret);

/* A part of an interval: its slot, and its end as an offset in the interval. */
struct mw_slot_part {
	struct mw_slot *slot;
	uint64_t end_offset;
	bool late;
};

/* An interval that is split over slots; what lies before @offset has been given out. */
struct mw_slot_split {
	uint64_t begin_ns;
	uint64_t length;
	uint64_t offset;
	bool done;
};

void mw_slot_split_start(struct mw_slot_split *split, uint64_t begin_ns, uint64_t end_ns);

/*
 * Finds the next part. Returns 1, 0 at the end, or -ENOMEM. What lies before the open slots is one
 * part, or as many as the range divides it into, so there are at most three parts more than there
 * are open slots.
 */
int mw_slot_split_next(struct mw_slot_window *window, struct mw_slot_split *split,
		       struct mw_slot_part *ret);

/* The share of @value in a part. The shares of all parts add up to @value exactly. */
uint64_t mw_slot_split_share(uint64_t value, const struct mw_slot_split *split, uint64_t from,
			     uint64_t to);

#endif /* MW_SLOT_WINDOW_H */
