/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The occupancies of all rows of a summary, and of the total. The readings of a slot are noted
 * with their rows first, and then applied in the order of time. The work is proportional to the
 * number of readings and not to the time for which they hold.
 */
#ifndef MW_LEVELS_H
#define MW_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

#include "account/occupancy.h"
#include "account/slot-entry.h"
#include "base/index.h"

#define MW_NO_ROW UINT32_MAX

/**
 * struct mw_holder - an RMID with a level
 * @rmid: RMID
 * @generation: its latest generation with a reading
 * @row: number of its row, or MW_NO_ROW; valid if @epoch is that of the rows
 * @epoch: see struct mw_levels
 * @holds: @bytes holds since @since_ns
 * @ended: the generation has ended
 * @status: &enum memwatch_status of @bytes
 * @bytes: the last reading
 * @since_ns: time of the last reading
 */
struct mw_holder {
	uint32_t rmid;
	uint32_t generation;
	uint32_t row;
	uint32_t epoch;
	bool holds;
	bool ended;
	uint8_t status;
	uint64_t bytes;
	uint64_t since_ns;
};

/**
 * struct mw_level_event - a change in the slot that is being added
 * @time_ns: when
 * @entry: number of the entry in the slot, which makes the order unique
 * @is_end: the RMID was freed; otherwise it was read
 * @row: number of the row, or MW_NO_ROW
 */
struct mw_level_event {
	uint64_t time_ns;
	uint32_t entry;
	bool is_end;
	uint32_t row;
};

/**
 * struct mw_levels - the occupancies
 * @total: of all RMIDs
 * @rows: by number of the row
 * @nr_rows: length of @rows
 * @max_rows: how many fit
 * @begin_ns: when the time of the rows begins
 * @epoch: how often the rows were removed; so this costs nothing for each RMID
 * @holders: one for each RMID with a reading
 * @nr_holders: length of @holders
 * @max_holders: how many fit
 * @holders_max: how many there may be; a reading of a further RMID holds for its slot
 * @index: from the RMID to @holders
 * @events: those of the slot that is being added
 * @nr_events: length of @events
 * @max_events: how many fit
 */
struct mw_levels {
	struct mw_occupancy total;
	struct mw_occupancy *rows;
	uint32_t nr_rows, max_rows;
	uint64_t begin_ns;
	uint32_t epoch;
	struct mw_holder *holders;
	uint32_t nr_holders, max_holders, holders_max;
	struct mw_index index;
	struct mw_level_event *events;
	uint32_t nr_events, max_events;
};

void mw_levels_init(struct mw_levels *levels, uint32_t holders_max);
void mw_levels_uninit(struct mw_levels *levels);

/* Removes the rows. What holds for an RMID still holds; the time before @begin_ns does not count.
 */
void mw_levels_restart(struct mw_levels *levels, uint64_t begin_ns);

/* Adds the next row. Returns 0 or -ENOMEM. */
int mw_levels_add_row(struct mw_levels *levels);

/* Whether what was read of an RMID still holds. */
bool mw_levels_hold(const struct mw_levels *levels, uint32_t rmid, uint32_t generation);

/* Begins a slot. What was noted of one that could not be added, for lack of memory, is dropped. */
void mw_levels_begin(struct mw_levels *levels);

/* Notes entry number @number of a slot; its row is @row or MW_NO_ROW. Returns 0 or -ENOMEM. */
int mw_levels_note(struct mw_levels *levels, const struct mw_slot_given *slot, uint32_t number,
		   uint32_t row);

/* Applies what was noted of a slot. Returns 0 or -ENOMEM. */
int mw_levels_apply(struct mw_levels *levels, const struct mw_slot_given *slot);

/* The same, and stores the occupancy of all RMIDs in this slot as that of a row. */
int mw_levels_apply_to(struct mw_levels *levels, const struct mw_slot_given *slot, uint32_t row);

#endif /* MW_LEVELS_H */
