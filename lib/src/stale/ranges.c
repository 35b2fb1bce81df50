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

/* Splits a full leaf. A heap that grows upwards leaves full leaves behind it. */
static int split_leaf(struct mw_ranges *ranges, size_t at, uint64_t start)
{
	struct mw_ranges_leaf *full = ranges->leaf[at], *upper = insert_leaf(ranges, at + 1);
	bool is_last = at + 2 == ranges->count && start > full->start[MW_RANGES_LEAF - 1];

	if (!upper)
		return -ENOMEM;
	move_elements(upper, full, is_last ? MW_RANGES_LEAF - 1 : MW_RANGES_LEAF / 2);
	ranges->first[at + 1] = upper->start[0];
	return 0;
}

int mw_ranges_add(struct mw_ranges *ranges, uint64_t start, uint32_t object)
{
	struct mw_ranges_leaf *leaf;
	size_t at = 0, place, behind;

	if (!ranges->count && !insert_leaf(ranges, 0))
		return -ENOMEM;
	at = leaf_of(ranges, start);
	if (ranges->leaf[at]->count == MW_RANGES_LEAF) {
		if (split_leaf(ranges, at, start))
			return -ENOMEM;
		at += start > ranges->first[at + 1];
	}
	leaf = ranges->leaf[at];
	place = upper_bound(leaf->start, leaf->count, start);
	behind = leaf->count - place;
	memmove(leaf->start + place + 1, leaf->start + place, behind * sizeof(*leaf->start));
	memmove(leaf->object + place + 1, leaf->object + place, behind * sizeof(*leaf->object));
	leaf->start[place] = start;
	leaf->object[place] = object;
	leaf->count++;
	ranges->first[at] = leaf->start[0];
	return 0;
}

bool mw_ranges_find(const struct mw_ranges *ranges, uint64_t address, uint64_t *start,
		    uint32_t *object)
{
	const struct mw_ranges_leaf *leaf;
	size_t after;

	if (!ranges->count)
		return false;
	leaf = ranges->leaf[leaf_of(ranges, address)];
	after = upper_bound(leaf->start, leaf->count, address);
	if (!after)
		return false;
	*start = leaf->start[after - 1];
	*object = leaf->object[after - 1];
	return true;
}

void mw_ranges_fetch(const struct mw_ranges *ranges, uint64_t address)
{
	const struct mw_ranges_leaf *leaf;

	if (!ranges->count)
		return;
	leaf = ranges->leaf[leaf_of(ranges, address)];
	__builtin_prefetch(&leaf->count);
	for (size_t i = MW_RANGES_LEAF / 8; i < MW_RANGES_LEAF; i += MW_RANGES_LEAF / 8)
		__builtin_prefetch(&leaf->start[i]);
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

bool mw_ranges_remove(struct mw_ranges *ranges, uint64_t start, uint32_t *object)
{
	struct mw_ranges_leaf *leaf;
	size_t at, place, behind;

	if (!ranges->count)
		return false;
	at = leaf_of(ranges, start);
	leaf = ranges->leaf[at];
	place = upper_bound(leaf->start, leaf->count, start);
	if (!place || leaf->start[place - 1] != start)
		return false;
	*object = leaf->object[place - 1];
	behind = leaf->count - place;
	memmove(leaf->start + place - 1, leaf->start + place, behind * sizeof(*leaf->start));
	memmove(leaf->object + place - 1, leaf->object + place, behind * sizeof(*leaf->object));
	if (!--leaf->count) {
		delete_leaf(ranges, at);
		return true;
	}
	ranges->first[at] = leaf->start[0];
	if (leaf->count <= MW_RANGES_LEAF / 4) {
		join_leaves(ranges, at);
		if (at)
			join_leaves(ranges, at - 1);
	}
	return true;
}

void mw_ranges_uninit(struct mw_ranges *ranges)
{
	for (size_t i = 0; i < ranges->count; i++)
		free(ranges->leaf[i]);
	free(ranges->leaf);
	free(ranges->first);
	*ranges = (struct mw_ranges){ 0 };
}
