// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The hash index: insertion, removal and growth.
 */
#include "base/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define SIZE_MIN  32U
#define SIZE_KEEP 1024U /* an index of this size is emptied in place */

void mw_index_init(struct mw_index *index)
{
	struct timespec now;

	*index = (struct mw_index){ 0 };
	if (getrandom(index->seed, sizeof(index->seed), GRND_NONBLOCK) == sizeof(index->seed))
		return;
	/* Early at boot there is no randomness yet, and hardly an attacker either. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	index->seed[0] = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec;
	index->seed[1] = (uint64_t)(uintptr_t)index;
}

uint32_t mw_index_hash_text(const struct mw_index *index, const char *text, size_t len)
{
	uint64_t word, hash = len;

	for (size_t at = 0; at < len; at += sizeof(word)) {
		word = 0;
		memcpy(&word, text + at, len - at < sizeof(word) ? len - at : sizeof(word));
		hash = hash << 32 | mw_index_hash(index, hash, word);
	}
	return (uint32_t)hash;
}

/* Puts an entry into the first empty place. Callers grow the table before it is full. */
static void index_place(struct mw_index *index, struct mw_index_place entry)
{
	uint32_t at = entry.hash & (index->size - 1);

	while (index->places[at].number != MW_INDEX_NONE)
		at = (at + 1) & (index->size - 1);
	index->places[at] = entry;
}

int mw_index_grow(struct mw_index *index)
{
	struct mw_index grown = {
		.size = index->size ? index->size * 2 : SIZE_MIN,
		.seed = { index->seed[0], index->seed[1] },
	};

	if (!grown.size)
		return -ENOMEM;
	grown.places = reallocarray(NULL, grown.size, sizeof(*grown.places));
	if (!grown.places)
		return -ENOMEM;
	memset(grown.places, 0xff, grown.size * sizeof(*grown.places));
	for (uint32_t i = 0; i < index->size; i++)
		if (index->places[i].number != MW_INDEX_NONE)
			index_place(&grown, index->places[i]);
	grown.count = index->count;
	free(index->places);
	*index = grown;
	return 0;
}

static uint32_t index_find(const struct mw_index *index, uint32_t hash, uint32_t number)
{
	uint32_t at = hash & (index->size - 1);

	while (index->places[at].number != number)
		at = (at + 1) & (index->size - 1);
	return at;
}

/*
 * Closes the gap instead of marking it: an entry behind the gap moves into it if its own
 * first place is not between the gap and where it lies.
 */
void mw_index_remove(struct mw_index *index, uint32_t hash, uint32_t number)
{
	uint32_t mask = index->size - 1;
	uint32_t gap = index_find(index, hash, number);

	for (uint32_t at = (gap + 1) & mask; index->places[at].number != MW_INDEX_NONE;
	     at = (at + 1) & mask) {
		uint32_t first = index->places[at].hash & mask;

		if (((at - first) & mask) >= ((at - gap) & mask)) {
			index->places[gap] = index->places[at];
			gap = at;
		}
	}
	index->places[gap].number = MW_INDEX_NONE;
	index->count--;
}

void mw_index_renumber(struct mw_index *index, uint32_t hash, uint32_t number, uint32_t to)
{
	index->places[index_find(index, hash, number)].number = to;
}

void mw_index_clear(struct mw_index *index)
{
	if (index->size > SIZE_KEEP && index->count < index->size / 16)
		mw_index_free(index);
	/* MW_INDEX_NONE has all bits set. */
	if (index->size)
		memset(index->places, 0xff, index->size * sizeof(*index->places));
	index->count = 0;
}

void mw_index_free(struct mw_index *index)
{
	free(index->places);
	index->places = NULL;
	index->size = index->count = 0;
}
