// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growing array and the hash index, compared with an array of what they should contain; lists
 * of CPUs.
 */
#include <stdbool.h>

#include <memwatch/value.h>

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"
#include "base/array.h"
#include "base/cpus.h"
#include "base/index.h"

static void test_array(void)
{
	uint32_t *numbers = NULL, capacity = 0, wrong = 0;
	uint8_t tiny = 0;
	char *bytes = NULL;

	for (uint32_t i = 0; i < 100000; i++) {
		if (mw_array_reserve(numbers, capacity, i + 1))
			break;
		numbers[i] = i;
	}
	for (uint32_t i = 0; i < 100000; i++)
		wrong += numbers[i] != i;
	tap_eq(wrong, 0, "a growing array keeps what was written to it");
	tap_ok(capacity >= 100000 && capacity < 200000, "the capacity doubles at most");
	tap_ok(mw_array_reserve(numbers, capacity, SIZE_MAX / 2) == -ENOMEM &&
		       numbers[99999] == 99999,
	       "a size that overflows is refused and the array is kept");
	tap_ok(!mw_array_reserve(bytes, tiny, 100) && tiny == 128,
	       "a capacity of eight bits holds 128 elements");
	tap_ok(mw_array_reserve(bytes, tiny, 200) == -ENOMEM && tiny == 128,
	       "a capacity that its type cannot hold is refused");
	free(numbers);
	free(bytes);
}

#define KEYS 4096

/* Keys whose hashes collide in the low bits when @bits is small. */
static uint32_t hash_of(const struct mw_index *index, uint32_t key, uint32_t bits)
{
	return mw_index_hash(index, key, 0) & (uint32_t)((1ULL << bits) - 1);
}

static bool has_entry(const struct mw_index *index, uint32_t hash, uint32_t number)
{
	uint32_t at, candidate;

	mw_index_for_each (index, hash, &at, candidate)
		if (candidate == number)
			return true;
	return false;
}

static void test_index(uint32_t bits, uint32_t keys, const char *what)
{
	static bool in[KEYS];
	struct mw_index index;
	struct prng prng = { 1 };
	uint32_t wrong = 0, count = 0;

	mw_index_init(&index);
	for (uint32_t i = 0; i < keys; i++)
		in[i] = false;
	for (uint32_t step = 0; step < 200000; step++) {
		uint32_t key = prng_below(&prng, keys);

		if (in[key])
			mw_index_remove(&index, hash_of(&index, key, bits), key);
		else if (mw_index_insert(&index, hash_of(&index, key, bits), key))
			break;
		in[key] = !in[key];
		count += in[key] ? 1 : -1U;
		if (step % 20000 == 19999)
			for (uint32_t i = 0; i < keys; i++)
				wrong += has_entry(&index, hash_of(&index, i, bits), i) != in[i];
	}
	tap_eq(wrong, 0, "the index finds exactly what was inserted: %s", what);
	tap_eq(index.count, count, "the index counts its entries: %s", what);
	mw_index_free(&index);
}

static void test_renumber(void)
{
	struct mw_index index = { 0 };
	uint32_t at, none;

	mw_index_for_each (&index, 7, &at, none)
		;
	tap_eq(none, MW_INDEX_NONE, "an index without memory finds nothing");
	mw_index_insert(&index, 7, 1);
	mw_index_insert(&index, 7, 2);
	mw_index_renumber(&index, 7, 1, 9);
	tap_ok(has_entry(&index, 7, 9), "an entry that was renumbered is found by its new number");
	tap_ok(!has_entry(&index, 7, 1), "an entry that was renumbered has lost its old number");
	tap_ok(has_entry(&index, 7, 2), "an entry is found after another one was renumbered");
	mw_index_clear(&index);
	tap_eq(index.count, 0, "a cleared index counts no entries");
	tap_ok(!has_entry(&index, 7, 9), "a cleared index finds nothing");
	mw_index_free(&index);
}

/* Keys that somebody chooses collide in one index only. */
static void test_seed(void)
{
	struct mw_index first, second;
	uint32_t same = 0;

	mw_index_init(&first);
	mw_index_init(&second);
	for (uint32_t key = 0; key < KEYS; key++)
		same += mw_index_hash(&first, key, 7) == mw_index_hash(&second, key, 7);
	tap_ok(same < 10, "two indexes have different hashes of the same keys (%u equal)", same);
	tap_ok(mw_index_hash(&first, 1, 2) != mw_index_hash(&first, 2, 1),
	       "the order of the words of a key counts");
}

/* An index that was large once must not cost as much each time that it is emptied. */
static void test_clear(void)
{
	struct mw_index index;

	mw_index_init(&index);
	for (uint32_t i = 0; i < 100000; i++)
		mw_index_insert(&index, mw_index_hash(&index, i, 0), i);
	mw_index_clear(&index);
	mw_index_insert(&index, mw_index_hash(&index, 5, 0), 5);
	mw_index_clear(&index);
	tap_ok(index.size <= 1024, "an index that is hardly used any more gets small (%u)",
	       index.size);
	mw_index_insert(&index, mw_index_hash(&index, 5, 0), 5);
	tap_ok(has_entry(&index, mw_index_hash(&index, 5, 0), 5),
	       "an index that got small can be used again");
	mw_index_free(&index);
}

static void test_status(void)
{
	struct memwatch_value sum = { 0 };
	bool same = true;

	for (__u8 a = 0; a < 8; a++) {
		for (__u8 b = 0; b < 8; b++) {
			same &= memwatch_status_worst(a, b) == memwatch_status_worst(b, a);
			for (__u8 c = 0; c < 7 && a < 7 && b < 7; c++)
				same &= memwatch_status_worst(memwatch_status_worst(a, b), c) ==
					memwatch_status_worst(a, memwatch_status_worst(b, c));
		}
	}
	tap_ok(same, "the worst of several statuses does not depend on their order");
	memwatch_value_add(&sum, 5, MEMWATCH_STATUS_UNAVAILABLE);
	tap_eq(sum.value, 0, "an unavailable part adds nothing to a sum");
	tap_eq(sum.status, MEMWATCH_STATUS_UNAVAILABLE,
	       "a sum of unavailable parts is unavailable");
	memwatch_value_add(&sum, 5, MEMWATCH_STATUS_OK);
	tap_eq(sum.value, 5, "a measured part is added to a sum with an unavailable one");
	tap_eq(sum.status, MEMWATCH_STATUS_ESTIMATED,
	       "a sum with an unavailable part is estimated");
	tap_eq(sum.parts, 2, "a sum counts its parts, measured or not");
	memwatch_value_add(&sum, ~0ULL, MEMWATCH_STATUS_OK);
	tap_eq(sum.value, ~0ULL, "a sum does not wrap");
}

/* The first ten CPUs of a list as digits, or NULL if it is no list. */
static const char *cpus_of(const char *list)
{
	static char digits[11];
	uint8_t set[10];

	if (!mw_cpus_parse((struct mw_text){ list, strlen(list) }, set, 10))
		return NULL;
	for (int i = 0; i < 10; i++)
		digits[i] = (char)('0' + set[i]);
	return digits;
}

static void test_cpus(void)
{
	static const char *const bad[] = { "0-", "-3", "3-1", "1,,2", "1-2-3", "x", "1 2", "0x1" };

	tap_str_eq(cpus_of("0-3,8\n"), "1111000010", "a list of CPUs has ranges and numbers");
	tap_str_eq(cpus_of("5-8191,100000"), "0000011111", "CPUs beyond the set are ignored");
	tap_str_eq(cpus_of("\n"), "0000000000", "a list of CPUs may be empty");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		tap_str_eq(cpus_of(bad[i]), NULL, "\"%s\" is no list of CPUs", bad[i]);
}

int main(void)
{
	tap_start();
	test_array();
	test_seed();
	test_clear();
	test_index(32, KEYS, "many keys");
	test_index(3, 64, "hashes that collide");
	test_renumber();
	test_status();
	test_cpus();
	return tap_done();
}
