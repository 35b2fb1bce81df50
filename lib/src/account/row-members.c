// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The RMIDs of the rows, with an index.
 */
#include "account/row-members.h"

#include <errno.h>
#include <stdlib.h>

#include <linux/memwatch.h>

#include "base/array.h"

#define SEEN_BITS 64

void mw_row_members_init(struct mw_row_members *members, uint32_t max)
{
	*members = (struct mw_row_members){ .max = max };
	mw_index_init(&members->index);
}

void mw_row_members_uninit(struct mw_row_members *members)
{
	free(members->entries);
	mw_index_free(&members->index);
}

void mw_row_members_clear(struct mw_row_members *members)
{
	members->count = 0;
	mw_index_clear(&members->index);
}

/* Generations of RMID 0 have nothing in common: each is a member of its own. */
static uint64_t member_key(uint32_t rmid, uint32_t generation)
{
	return rmid == MEMWATCH_RMID_UNASSIGNED ? (uint64_t)generation << 32 : rmid;
}

struct mw_row_member *mw_row_members_find(const struct mw_row_members *members, uint32_t row,
					  uint32_t rmid, uint32_t generation)
{
	uint64_t key = member_key(rmid, generation);
	uint32_t hash = mw_index_hash(&members->index, key, row), at, number;

	mw_index_for_each (&members->index, hash, &at, number) {
		struct mw_row_member *member = &members->entries[number];

		if (member->row == row && member_key(member->rmid, member->newest) == key)
			return member;
	}
	return NULL;
}

int mw_row_members_add(struct mw_row_members *members, uint32_t row, uint32_t rmid,
		       uint32_t generation, uint32_t at)
{
	uint32_t hash = mw_index_hash(&members->index, member_key(rmid, generation), row);

	if (members->count >= members->max)
		return -ENOSPC;
	if (mw_array_reserve(members->entries, members->capacity, members->count + 1) ||
	    mw_index_insert(&members->index, hash, members->count))
		return -ENOMEM;
	members->entries[members->count++] = (struct mw_row_member){
		.row = row,
		.rmid = rmid,
		.at = at,
		.newest = generation,
		.seen = 1,
	};
	return 0;
}

bool mw_row_member_note(struct mw_row_member *member, uint32_t generation)
{
	uint32_t distance;

	if (generation > member->newest) {
		distance = generation - member->newest;
		member->seen = distance < SEEN_BITS ? member->seen << distance : 0;
		member->seen |= 1;
		member->newest = generation;
		return true;
	}
	distance = member->newest - generation;
	if (distance >= SEEN_BITS || member->seen >> distance & 1)
		return false;
	member->seen |= 1ULL << distance;
	return true;
}
