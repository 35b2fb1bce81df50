/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * An ordered map from the first address of an object to its number. It is a sorted array that is
 * cut into leaves, and a sorted array of the leaves: two binary searches find the object that an
 * address is in, and a change moves only what is in one leaf. An object takes 12 bytes in a leaf
 * that is at least a quarter full. A leaf that is split or joined moves the array of leaves, which
 * has 16 bytes for each of them.
 */
#ifndef MW_STALE_RANGES_H
#define MW_STALE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MW_RANGES_LEAF 256

struct mw_ranges_leaf {
	uint32_t count;
	uint32_t object[MW_RANGES_LEAF];
	uint64_t start[MW_RANGES_LEAF];
};

/**
 * struct mw_ranges - the map; zero is an empty one
 * @first: the lowest address of each leaf; owned
 * @leaf: the leaves, none of which is empty; owned
 * @count: number of leaves
 * @first_room, @leaf_room: capacity of the arrays
 */
struct mw_ranges {
	uint64_t *first;
	struct mw_ranges_leaf **leaf;
	size_t count, first_room, leaf_room;
};

/**
 * struct mw_ranges_spot - where an address is in the map, or would be
 * @leaf: number of the leaf; 0 if there is none
 * @after: number of elements of this leaf that are at most the address
 *
 * A spot that was found earlier, for the same address or any other, is a hint: what is still right
 * about it is not searched for again. Zero is a valid hint.
 */
struct mw_ranges_spot {
	uint32_t leaf, after;
};

/* Finds the spot of @address. */
void mw_ranges_seek(const struct mw_ranges *ranges, uint64_t address, struct mw_ranges_spot *spot);

/* Finds the leaf of @address, and fetches what mw_ranges_seek() will look at. */
void mw_ranges_fetch(const struct mw_ranges *ranges, uint64_t address, struct mw_ranges_spot *spot);

/* The object with the highest first address that is at most that of @spot. False if none is. */
bool mw_ranges_before(const struct mw_ranges *ranges, const struct mw_ranges_spot *spot,
		      uint64_t *start, uint32_t *object);

/* The first address of the object behind @spot; UINT64_MAX if there is none. */
uint64_t mw_ranges_behind(const struct mw_ranges *ranges, const struct mw_ranges_spot *spot);

/* Adds an object at an address that the map does not have, whose spot it is. 0 or -ENOMEM. */
int mw_ranges_add(struct mw_ranges *ranges, const struct mw_ranges_spot *spot, uint64_t start,
		  uint32_t object);

/* Removes the object that mw_ranges_before() tells. There is one. */
void mw_ranges_remove(struct mw_ranges *ranges, const struct mw_ranges_spot *spot);

void mw_ranges_uninit(struct mw_ranges *ranges);

#endif /* MW_STALE_RANGES_H */
