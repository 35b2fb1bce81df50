/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A hash index: from the hash of a key to the numbers of the entries that may have
 * this key. The entries stay in an array of the caller, who compares the keys. Open
 * addressing with linear probing, at most half full, so a look-up that finds nothing
 * ends soon. Each place keeps the full hash: the index grows without the keys, and
 * entries of other hashes are passed over without a look at the array.
 *
 *	mw_index_for_each(&index, hash, &at, number)
 *		if (entries[number].key == key)
 *			return &entries[number];
 */
#ifndef MW_INDEX_H
#define MW_INDEX_H

#include <errno.h>
#include <stdint.h>

#define MW_INDEX_NONE UINT32_MAX

/* A place of the index; empty if @number is MW_INDEX_NONE. */
struct mw_index_place {
	uint32_t hash;
	uint32_t number;
};

/**
 * struct mw_index - the index; zero is an empty one
 * @places: owned; NULL before the first insertion
 * @size: how many places, a power of two
 * @count: how many are in use
 */
struct mw_index {
	struct mw_index_place *places;
	uint32_t size;
	uint32_t count;
};

/* Two or three words as one hash whose low bits depend on all of them. */
static inline uint32_t mw_index_hash(uint64_t a, uint64_t b)
{
	uint64_t hash = (a * 0x9e3779b97f4a7c15ULL ^ (b + 0x632be59bd9b4e019ULL)) *
			0xff51afd7ed558ccdULL;

	return (uint32_t)(hash >> 32);
}

/* Doubles the number of places. Returns 0 or -ENOMEM. For mw_index_insert(). */
int mw_index_grow(struct mw_index *index);

/* Removes @number, which was inserted with @hash. Ends any iteration over the index. */
void mw_index_remove(struct mw_index *index, uint32_t hash, uint32_t number);

/* The entry with this hash and number is now number @to: for arrays that are compacted. */
void mw_index_renumber(struct mw_index *index, uint32_t hash, uint32_t number, uint32_t to);

/* Empties the index and keeps its memory. */
void mw_index_clear(struct mw_index *index);

void mw_index_free(struct mw_index *index);

/*
 * The next number with @hash from place *@at on, or MW_INDEX_NONE. Advances *@at, which
 * begins as the hash itself and is taken modulo the size.
 */
static inline uint32_t mw_index_next(const struct mw_index *index, uint32_t hash, uint32_t *at)
{
	uint32_t mask = index->size - 1, place = *at;

	if (!index->size)
		return MW_INDEX_NONE;
	while (index->places[place & mask].number != MW_INDEX_NONE &&
	       index->places[place & mask].hash != hash)
		place++;
	*at = place + 1;
	return index->places[place & mask].number;
}

/* @at is a pointer to a uint32_t for the place; @number gets the number of each candidate. */
#define mw_index_for_each(index, hash, at, number)                                                 \
	for (*(at) = (hash); ((number) = mw_index_next(index, hash, at)) != MW_INDEX_NONE;)

/* Inserts @number, which must not be in the index. 0 or -ENOMEM; then nothing changed. */
static inline int mw_index_insert(struct mw_index *index, uint32_t hash, uint32_t number)
{
	uint32_t mask, place = hash;

	if (index->count >= index->size / 2 && mw_index_grow(index))
		return -ENOMEM;
	mask = index->size - 1;
	while (index->places[place & mask].number != MW_INDEX_NONE)
		place++;
	index->places[place & mask] = (struct mw_index_place){ .hash = hash, .number = number };
	index->count++;
	return 0;
}

#endif /* MW_INDEX_H */
