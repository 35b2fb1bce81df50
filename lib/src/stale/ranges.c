// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The ordered map of objects.
 */
#include "stale/ranges.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/*
 * The number of elements that are at most @key. The steps are computed and not branched to: half of
 * the branches would be predicted wrong.
 */
static size_t upper_bound(const uint64_t *keys, size_t count, uint64_t key)
{
	const uint64_t *base = keys;

	if (!count)
		return 0;
	while (count > 1) {
		size_t half = count / 2;

		base += -(size_t)(base[half - 1] <= key) & half;
		count -= half;
	}
	return (size_t)(base - keys) + (*base <= key);
}

/* The leaf that has @address, or would get it. There is at least one leaf. */
static size_t leaf_of(const struct mw_ranges *ranges, uint64_t address)
{
	size_t after = upper_bound(ranges->first, ranges->count, address);

	return after ? after - 1 : 0;
}

/* Whether this leaf has @address, or would get it. */
static bool is_leaf_of(const struct mw_ranges *ranges, size_t at, uint64_t address)
{
	return at < ranges->count && (!at || ranges->first[at] <= address) &&
	       (at + 1 == ranges->count || address < ranges->first[at + 1]);
}

static bool is_upper_bound(const struct mw_ranges_leaf *leaf, uint32_t after, uint64_t address)
{
	return after <= leaf->count && (!after || leaf->start[after - 1] <= address) &&
	       (after == leaf->count || address < leaf->start[after]);
}

void mw_ranges_seek(const struct mw_ranges *ranges, uint64_t address, struct mw_ranges_spot *spot)
{
	const struct mw_ranges_leaf *leaf;

	if (!ranges->count) {
		*spot = (struct mw_ranges_spot){ 0 };
		return;
	}
	if (!is_leaf_of(ranges, spot->leaf, address))
		spot->leaf = (uint32_t)leaf_of(ranges, address);
	leaf = ranges->leaf[spot->leaf];
	if (!is_upper_bound(leaf, spot->after, address))
		spot->after = (uint32_t)upper_bound(leaf->start, leaf->count, address);
}

void mw_ranges_fetch(const struct mw_ranges *ranges, uint64_t address, struct mw_ranges_spot *spot)
{
	const struct mw_ranges_leaf *leaf;

	*spot = (struct mw_ranges_spot){ 0 };
	if (!ranges->count)
		return;
	spot->leaf = (uint32_t)leaf_of(ranges, address);
	leaf = ranges->leaf[spot->leaf];
	__builtin_prefetch(&leaf->count);
	for (size_t i = MW_RANGES_LEAF / 8; i < MW_RANGES_LEAF; i += MW_RANGES_LEAF / 8)
		__builtin_prefetch(&leaf->start[i]);
}

bool mw_ranges_before(const struct mw_ranges *ranges, const struct mw_ranges_spot *spot,
		      uint64_t *start, uint32_t *object)
{
	const struct mw_ranges_leaf *leaf;

	/* The first leaf alone may get addresses below its own. */
	if (!spot->after)
		return false;
	leaf = ranges->leaf[spot->leaf];
	*start = leaf->start[spot->after - 1];
	*object = leaf->object[spot->after - 1];
	return true;
}

uint64_t mw_ranges_behind(const struct mw_ranges *ranges, const struct mw_ranges_spot *spot)
{
	if (!ranges->count)
		return UINT64_MAX;
	if (spot->after < ranges->leaf[spot->leaf]->count)
		return ranges->leaf[spot->leaf]->start[spot->after];
	return spot->leaf + 1 < ranges->count ? ranges->first[spot->leaf + 1] : UINT64_MAX;
}

/* Makes room for a leaf behind leaf @at and its entry in the arrays. */
static struct mw_ranges_leaf *insert_leaf(struct mw_ranges *ranges, size_t at)
{
	struct mw_ranges_leaf *leaf;

	if (mw_array_reserve(ranges->first, ranges->first_room, ranges->count + 1) ||
	    mw_array_reserve(ranges->leaf, ranges->leaf_room, ranges->count + 1))
		return NULL;
	leaf = malloc(sizeof(*leaf));
	if (!leaf)
		return NULL;
	leaf->count = 0;
	memmove(ranges->first + at + 1, ranges->first + at,
		(ranges->count - at) * sizeof(*ranges->first));
	memmove(ranges->leaf + at + 1, ranges->leaf + at,
		(ranges->count - at) * sizeof(*ranges->leaf));
	ranges->leaf[at] = leaf;
	ranges->first[at] = 0;
	ranges->count++;
	return leaf;
}

static void delete_leaf(struct mw_ranges *ranges, size_t at)
{
	free(ranges->leaf[at]);
	ranges->count--;
	memmove(ranges->first + at, ranges->first + at + 1,
		(ranges->count - at) * sizeof(*ranges->first));
	memmove(ranges->leaf + at, ranges->leaf + at + 1,
		(ranges->count - at) * sizeof(*ranges->leaf));
}

/* Appends the elements of @from, from @first on, to @to. */
static void move_elements(struct mw_ranges_leaf *to, struct mw_ranges_leaf *from, uint32_t first)
{
	uint32_t moved = from->count - first;

	memcpy(to->start + to->count, from->start + first, moved * sizeof(*to->start));
	memcpy(to->object + to->count, from->object + first, moved * sizeof(*to->object));
	to->count += moved;
	from->count = first;
}

/*
 * Splits the full leaf of a spot, which moves to the upper half if @start is there. A heap that
 * grows upwards leaves full leaves behind it.
 */
static int split_leaf(struct mw_ranges *ranges, struct mw_ranges_spot *spot)
{
	struct mw_ranges_leaf *full = ranges->leaf[spot->leaf];
	struct mw_ranges_leaf *upper = insert_leaf(ranges, spot->leaf + 1);
	bool is_last = spot->leaf + 2 == ranges->count && spot->after == MW_RANGES_LEAF;
	uint32_t half = is_last ? MW_RANGES_LEAF - 1 : MW_RANGES_LEAF / 2;

	if (!upper)
		return -ENOMEM;
	move_elements(upper, full, half);
	ranges->first[spot->leaf + 1] = upper->start[0];
	if (spot->after > half) {
		spot->leaf++;
		spot->after -= half;
	}
	return 0;
}

int mw_ranges_add(struct mw_ranges *ranges, const struct mw_ranges_spot *at, uint64_t start,
		  uint32_t object)
{
	struct mw_ranges_spot spot = *at;
	struct mw_ranges_leaf *leaf;
	uint32_t behind;

	if (!ranges->count && !insert_leaf(ranges, 0))
		return -ENOMEM;
	if (ranges->leaf[spot.leaf]->count == MW_RANGES_LEAF && split_leaf(ranges, &spot))
		return -ENOMEM;
	leaf = ranges->leaf[spot.leaf];
	behind = leaf->count - spot.after;
	memmove(leaf->start + spot.after + 1, leaf->start + spot.after,
		behind * sizeof(*leaf->start));
	memmove(leaf->object + spot.after + 1, leaf->object + spot.after,
		behind * sizeof(*leaf->object));
	leaf->start[spot.after] = start;
	leaf->object[spot.after] = object;
	leaf->count++;
	ranges->first[spot.leaf] = leaf->start[0];
	return 0;
}

/* Joins leaf @at + 1 to leaf @at if both together are half full. */
static void join_leaves(struct mw_ranges *ranges, size_t at)
{
	struct mw_ranges_leaf *lower = ranges->leaf[at], *upper;

	if (at + 1 >= ranges->count)
		return;
	upper = ranges->leaf[at + 1];
	if (lower->count + upper->count > MW_RANGES_LEAF / 2)
		return;
	move_elements(lower, upper, 0);
	delete_leaf(ranges, at + 1);
}

void mw_ranges_remove(struct mw_ranges *ranges, const struct mw_ranges_spot *spot)
{
	struct mw_ranges_leaf *leaf = ranges->leaf[spot->leaf];
	uint32_t behind = leaf->count - spot->after;

	memmove(leaf->start + spot->after - 1, leaf->start + spot->after,
		behind * sizeof(*leaf->start));
	memmove(leaf->object + spot->after - 1, leaf->object + spot->after,
		behind * sizeof(*leaf->object));
	if (!--leaf->count) {
		delete_leaf(ranges, spot->leaf);
		return;
	}
	ranges->first[spot->leaf] = leaf->start[0];
	if (leaf->count <= MW_RANGES_LEAF / 4) {
		join_leaves(ranges, spot->leaf);
		if (spot->leaf)
			join_leaves(ranges, spot->leaf - 1);
	}
}

void mw_ranges_uninit(struct mw_ranges *ranges)
{
	for (size_t i = 0; i < ranges->count; i++)
		free(ranges->leaf[i]);
	free(ranges->leaf);
	free(ranges->first);
	*ranges = (struct mw_ranges){ 0 };
}
