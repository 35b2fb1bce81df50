/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The map from the address of a live sample to its slot in the profile.
 */
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#include "index.h"

#define BUCKET_KEYS	 8 /* one cache line */
#define TABLE_BITS_FIRST 9 /* 512 buckets: 4096 keys in 48 KiB */
#define TABLE_BITS_STEP	 2
#define TABLES_MAX	 4 /* the last one has 2^18 keys */

struct index_table {
	uint64_t *keys;
	uint32_t *slots;
	uint32_t bits;
};

static struct index_table index_tables[TABLES_MAX];
static uint32_t index_table_count; /* tables are complete before this counts them */

/* The first key of bucket @choice (0 or 1) of @address. */
static size_t bucket_of(const struct index_table *table, uint64_t address, int choice)
{
	static const uint64_t multiplier[2] = {
		UINT64_C(0x9e3779b97f4a7c15),
		UINT64_C(0xc2b2ae3d27d4eb4f),
	};
	uint64_t mixed = (address >> 3) * multiplier[choice];

	mixed ^= mixed >> 32;
	return (size_t)((mixed * multiplier[choice]) >> (64 - table->bits)) * BUCKET_KEYS;
}

static uint32_t table_count(void)
{
	return __atomic_load_n(&index_table_count, __ATOMIC_ACQUIRE);
}

/*
 * The place whose key is @address in any state; false if there is none. No object is at address 0,
 * which is the key of an empty place.
 */
static bool place_find(uint64_t address, struct mw_index_place *ret)
{
	if (!address)
		return false;
	for (uint32_t t = table_count(); t-- > 0;) {
		const struct index_table *table = &index_tables[t];

		for (int choice = 0; choice < 2; choice++) {
			size_t first = bucket_of(table, address, choice);

			for (size_t i = first; i < first + BUCKET_KEYS; i++) {
				uint64_t key = __atomic_load_n(&table->keys[i], __ATOMIC_ACQUIRE);

				if ((key & ~(uint64_t)MW_INDEX_STATE) == address) {
					ret->key = &table->keys[i];
					ret->slot = &table->slots[i];
					return true;
				}
			}
		}
	}
	return false;
}

static int bucket_count_free(const struct index_table *table, size_t first)
{
	int free = 0;

	for (size_t i = first; i < first + BUCKET_KEYS; i++)
		free += __atomic_load_n(&table->keys[i], __ATOMIC_RELAXED) == 0;
	return free;
}

static bool bucket_claim(const struct index_table *table, size_t first, uint64_t address,
			 struct mw_index_place *ret)
{
	for (size_t i = first; i < first + BUCKET_KEYS; i++) {
		uint64_t expected = 0;

		if (__atomic_compare_exchange_n(&table->keys[i], &expected, address | MW_INDEX_HELD,
						false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			ret->key = &table->keys[i];
			ret->slot = &table->slots[i];
			return true;
		}
	}
	return false;
}

/* The emptier of two buckets: this lets a table be filled to three quarters and more. */
int mw_index_claim(uint64_t address, struct mw_index_place *ret)
{
	for (uint32_t t = table_count(); t-- > 0;) {
		const struct index_table *table = &index_tables[t];
		size_t bucket[2] = { bucket_of(table, address, 0), bucket_of(table, address, 1) };
		int better = bucket_count_free(table, bucket[1]) >
			     bucket_count_free(table, bucket[0]);

		if (bucket_claim(table, bucket[better], address, ret) ||
		    bucket_claim(table, bucket[!better], address, ret))
			return 0;
	}
	return -ENOSPC;
}

bool mw_index_release(const struct mw_index_place *place, uint64_t address, uint32_t slot)
{
	uint64_t expected = address | MW_INDEX_HELD;

	*place->slot = slot;
	if (__atomic_compare_exchange_n(place->key, &expected, address, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return true;
	mw_index_abandon(place);
	return false;
}

void mw_index_abandon(const struct mw_index_place *place)
{
	__atomic_store_n(place->key, 0, __ATOMIC_RELEASE);
}

enum mw_index_result mw_index_take(uint64_t address, uint32_t *ret_slot)
{
	struct mw_index_place place;
	uint64_t key = address;

	if (!place_find(address, &place))
		return MW_INDEX_ABSENT;
	/* Take the key first, then read its slot: nobody else changes the place then. */
	if (__atomic_compare_exchange_n(place.key, &key, address | MW_INDEX_HELD | MW_INDEX_DOOMED,
					false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		*ret_slot = *place.slot;
		mw_index_abandon(&place);
		return MW_INDEX_FOUND;
	}
	if (key == (address | MW_INDEX_HELD) &&
	    __atomic_compare_exchange_n(place.key, &key, key | MW_INDEX_DOOMED, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return MW_INDEX_DEFERRED;
	/* The holder let go in between: the key is plain now, or gone. */
	if (key == address &&
	    __atomic_compare_exchange_n(place.key, &key, address | MW_INDEX_HELD | MW_INDEX_DOOMED,
					false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		*ret_slot = *place.slot;
		mw_index_abandon(&place);
		return MW_INDEX_FOUND;
	}
	return MW_INDEX_ABSENT;
}

bool mw_index_hold(uint64_t address, struct mw_index_place *ret)
{
	uint64_t key = address;

	return place_find(address, ret) &&
	       __atomic_compare_exchange_n(ret->key, &key, address | MW_INDEX_HELD, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

int mw_index_grow(void)
{
	uint32_t count = table_count();
	struct index_table *table = &index_tables[count];
	size_t keys;
	void *memory;

	if (count == TABLES_MAX)
		return -ENOSPC;
	table->bits = TABLE_BITS_FIRST + TABLE_BITS_STEP * count;
	keys = ((size_t)1 << table->bits) * BUCKET_KEYS;
	memory = mmap(NULL, keys * (sizeof(*table->keys) + sizeof(*table->slots)),
		      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	table->keys = memory;
	table->slots = (uint32_t *)(table->keys + keys);
	__atomic_store_n(&index_table_count, count + 1, __ATOMIC_RELEASE);
	return 0;
}

void mw_index_clear(void)
{
	for (uint32_t t = 0; t < index_table_count; t++) {
		struct index_table *table = &index_tables[t];
		size_t keys = ((size_t)1 << table->bits) * BUCKET_KEYS;

		munmap(table->keys, keys * (sizeof(*table->keys) + sizeof(*table->slots)));
	}
	index_table_count = 0;
}
