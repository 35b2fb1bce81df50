// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Interned byte sequences.
 */
#include "heap/strings.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/array.h"
#include "base/timemath.h"

/* The high and the low half of the product depend on all bits of both factors. */
static uint64_t fold_product(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

uint32_t mw_strings_hash(uint64_t seed, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	uint64_t hash = seed ^ fold_product(len ^ 0x9e3779b97f4a7c15ULL, seed | 1), word;

	for (; len >= 8; at += 8, len -= 8) {
		memcpy(&word, at, 8);
		hash = fold_product(hash ^ word ^ 0xa0761d6478bd642fULL,
				    seed ^ 0xe7037ed1a0b428dbULL);
	}
	word = 0;
	if (len)
		memcpy(&word, at, len);
	hash = fold_product(hash ^ word ^ 0x8ebc6af09c88c6e3ULL, seed ^ 0x589965cc75374cc3ULL);
	return (uint32_t)(hash ^ hash >> 32);
}

int mw_strings_init(struct mw_strings *strings)
{
	uint32_t empty;

	*strings = (struct mw_strings){ 0 };
	/* Early in boot there may be no random bytes; the time is then better than nothing. */
	if (getrandom(&strings->seed, sizeof(strings->seed), GRND_NONBLOCK) !=
	    sizeof(strings->seed))
		strings->seed = mw_clock(CLOCK_MONOTONIC) ^ (uintptr_t)strings;
	return mw_strings_add(strings, "", 0, &empty);
}

void mw_strings_uninit(struct mw_strings *strings)
{
	free(strings->text);
	free(strings->entries);
	mw_index_free(&strings->index);
	*strings = (struct mw_strings){ 0 };
}

static bool find_hashed(const struct mw_strings *strings, uint32_t hash, const void *bytes,
			size_t len, uint32_t *ret)
{
	uint32_t at, number;

	mw_index_for_each (&strings->index, hash, &at, number) {
		if (strings->entries[number].len == len &&
		    !memcmp(mw_strings_text(strings, number), bytes, len)) {
			*ret = number;
			return true;
		}
	}
	return false;
}

bool mw_strings_find(const struct mw_strings *strings, const void *bytes, size_t len, uint32_t *ret)
{
	return find_hashed(strings, mw_strings_hash(strings->seed, bytes, len), bytes, len, ret);
}

int mw_strings_add(struct mw_strings *strings, const void *bytes, size_t len, uint32_t *ret)
{
	uint32_t hash = mw_strings_hash(strings->seed, bytes, len);

	if (find_hashed(strings, hash, bytes, len, ret))
		return 0;
	/* Sequences begin at multiples of 8, because some of them are arrays of numbers. */
	if (strings->count == MW_INDEX_NONE ||
	    mw_array_reserve(strings->text, strings->room, strings->used + len + 8) ||
	    mw_array_reserve(strings->entries, strings->capacity, strings->count + 1U) ||
	    mw_index_insert(&strings->index, hash, strings->count))
		return -ENOMEM;
	if (len)
		memcpy(strings->text + strings->used, bytes, len);
	memset(strings->text + strings->used + len, 0, 8 - len % 8);
	strings->entries[strings->count] = (struct mw_strings_entry){ .offset = strings->used,
								      .len = len };
	strings->used += len + 8 - len % 8;
	*ret = strings->count++;
	return 0;
}

int mw_strings_add_text(struct mw_strings *strings, const void *bytes, size_t len, uint32_t *ret)
{
	return mw_strings_add(strings, len ? bytes : "", len ? strnlen(bytes, len) : 0, ret);
}
