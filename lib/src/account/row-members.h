/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which RMIDs are in which row of a summary, and which generations of them were seen.
 * Generations ascend, except that a record may be late. So it is enough to remember the last
 * ones: memory does not grow with the number of processes that had an RMID. A process without
 * an RMID, which has a generation of RMID 0, is a member of its own.
 */
#ifndef MW_ROW_MEMBERS_H
#define MW_ROW_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"

/* The position of a member that is not listed. */
#define MW_NO_PLACE UINT32_MAX

/**
 * struct mw_row_member - an RMID in a row
 * @row: number of the row
 * @rmid: the RMID
 * @at: its position among the RMIDs of the row
 * @newest: its newest generation in the row
 * @seen: bit i: generation @newest - i was seen
 */
struct mw_row_member {
	uint32_t row;
	uint32_t rmid;
	uint32_t at;
	uint32_t newest;
	uint64_t seen;
};

/**
 * struct mw_row_members - the members of all rows
 * @entries: in order of appearance
 * @count: length of @entries
 * @capacity: how many fit
 * @max: how many there may be
 * @index: from (row, RMID or generation of RMID 0) to @entries
 */
struct mw_row_members {
	struct mw_row_member *entries;
	uint32_t count;
	uint32_t capacity;
	uint32_t max;
	struct mw_index index;
};

void mw_row_members_init(struct mw_row_members *members, uint32_t max);
void mw_row_members_uninit(struct mw_row_members *members);

/* Removes all and keeps the memory. */
void mw_row_members_clear(struct mw_row_members *members);

/* The member, or NULL; valid until one is added. */
struct mw_row_member *mw_row_members_find(const struct mw_row_members *members, uint32_t row,
					  uint32_t rmid, uint32_t generation);

/*
 * Adds an RMID that is not in the row, at position @at of its list. Returns 0, -ENOSPC if
 * there are too many, or -ENOMEM.
 */
int mw_row_members_add(struct mw_row_members *members, uint32_t row, uint32_t rmid,
		       uint32_t generation, uint32_t at);

/* Notes a generation of a member. Returns whether it was not seen before. */
bool mw_row_member_note(struct mw_row_member *member, uint32_t generation);

#endif /* MW_ROW_MEMBERS_H */
