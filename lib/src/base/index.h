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
 *	mw_index_for_each(&index, mw_index_hash(&index, key, 0), &at, number)
 *		if (entries[number].key == key)
 *			return &entries[number];
 *
 * Keys come from files of strangers. Each index has a random seed, so nobody can choose different
 * keys whose hashes collide. Equal keys do collide: who adds a key without looking for it first
 * takes time that grows with the square of their number. Nothing may depend on the order of the
 * places.
 */
#ifndef MW_INDEX_H
#define MW_INDEX_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#define MW_INDEX_NONE UINT32_MAX

/* A place of the index; empty if @number is MW_INDEX_NONE. */
struct mw_index_place {
	uint32_t hash;
	uint32_t number;
};

/**
 * struct mw_index - the index; zero is an empty one without a seed
 * @places: owned; NULL before the first insertion
 * @size: how many places, a power of two
 * @count: how many are in use
 * @seed: set by mw_index_init()
 */
struct mw_index {
	struct mw_index_place *places;
	uint32_t size;
	uint32_t count;
	uint64_t seed[2];
};

/* Makes an empty index with a seed of its own. */
void mw_index_init(struct mw_index *index);

static inline uint64_t mw_rotate(uint64_t word, unsigned int bits)
{
	return word << bits | word >> (64 - bits);
}

static inline void mw_sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = mw_rotate(v[1], 13) ^ v[0];
	v[3] = mw_rotate(v[3], 16) ^ v[2];
	v[0] = mw_rotate(v[0], 32) + v[3];
	v[2] += v[1];
	v[1] = mw_rotate(v[1], 17) ^ v[2];
	v[3] = mw_rotate(v[3], 21) ^ v[0];
	v[2] = mw_rotate(v[2], 32);
}

/* A key of two words as a hash: SipHash-1-3, without the length, which is always the same. */
static inline uint32_t mw_index_hash(const struct mw_index *index, uint64_t a, uint64_t b)
{
	uint64_t v[4] = {
		index->seed[0] ^ 0x736f6d6570736575ULL,
		index->seed[1] ^ 0x646f72616e646f6dULL,
		index->seed[0] ^ 0x6c7967656e657261ULL,
		index->seed[1] ^ 0x7465646279746573ULL,
	};

	v[3] ^= a;
	mw_sip_round(v);
	v[0] ^= a;
	v[3] ^= b;
	mw_sip_round(v);
	v[0] ^= b;
	v[2] ^= 0xff;
	mw_sip_round(v);
	mw_sip_round(v);
	mw_sip_round(v);
	return (uint32_t)(v[0] ^ v[1] ^ v[2] ^ v[3]);
}

/* The same for a key of @len bytes. */
uint32_t mw_index_hash_text(const struct mw_index *index, const char *text, size_t len);

/* Doubles the number of places. Returns 0 or -ENOMEM. For mw_index_insert(). */
int mw_index_grow(struct mw_index *index);

/* Removes @number, which was inserted with @hash. Ends any iteration over the index. */
void mw_index_remove(struct mw_index *index, uint32_t hash, uint32_t number);

/* The entry with this hash and number is now number @to: for arrays that are compacted. */
void mw_index_renumber(struct mw_index *index, uint32_t hash, uint32_t number, uint32_t to);

/*
 * Empties the index. It keeps its memory unless little of it was in use: otherwise every use
 * of an index that was large once would cost as much as that one.
 */
void mw_index_clear(struct mw_index *index);

/* Frees the memory and keeps the seed: the index is empty, and may be used again. */
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
