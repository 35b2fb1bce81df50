// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Two filters in front of free(), on the addresses of a real allocator: the profiler's counters,
 * and a Bloom filter of the same purpose (2^20 bits, four hash functions, nothing is ever
 * removed from it).
 *
 *	free-filter compare HEAP-MB RATE     prints, as the heap is replaced again and again, the
 *	                                     share of frees of unsampled objects that each passes
 *	free-filter counters|bloom|none N    N tests of addresses that are not in it, for callgrind
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heap/bootstrap.h"
#include "heap/filter.h"
#include "heap/interval.h"
#include "selftests/prng.h"

#define BLOOM_BITS   (1u << 20)
#define BLOOM_HASHES 4

char mw_bootstrap_heap[MW_BOOTSTRAP_BYTES];

static uint64_t bloom[BLOOM_BITS / 64];
static uint64_t bloom_set;

static inline uint64_t bloom_hash(const void *address)
{
	uint64_t hash = (uintptr_t)address >> 4;

	hash = (hash ^ hash >> 33) * UINT64_C(0xff51afd7ed558ccd);
	return (hash ^ hash >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
}

static inline bool bloom_may_have(const void *address)
{
	uint64_t hash = bloom_hash(address), step = hash >> 32 | 1;

	for (int i = 0; i < BLOOM_HASHES; i++, hash += step)
		if (!(bloom[hash % BLOOM_BITS / 64] >> hash % 64 & 1))
			return false;
	return true;
}

static void bloom_add(const void *address)
{
	uint64_t hash = bloom_hash(address), step = hash >> 32 | 1;

	for (int i = 0; i < BLOOM_HASHES; i++, hash += step) {
		uint64_t *word = &bloom[hash % BLOOM_BITS / 64], bit = UINT64_C(1) << hash % 64;

		bloom_set += !(*word & bit);
		*word |= bit;
	}
}

struct object {
	void *address;
	uint32_t size;
	bool sampled;
};

struct comparison {
	uint64_t frees, live;
	uint64_t counters_passed, bloom_passed;
};

static void object_replace(struct object *object, struct prng *prng, struct mw_random *random,
			   uint64_t *countdown, uint64_t rate, struct comparison *result)
{
	if (object->sampled) {
		mw_filter_remove(object->address);
		result->live--;
	} else if (object->address) {
		result->frees++;
		result->counters_passed += mw_filter_may_have(object->address);
		result->bloom_passed += bloom_may_have(object->address);
	}
	free(object->address);
	/* Most objects are small, some are large. */
	object->size = 16 + (uint32_t)prng_below(prng, UINT64_C(16) << prng_below(prng, 10));
	object->address = malloc(object->size);
	object->sampled = *countdown < object->size;
	*countdown -= object->size;
	if (object->sampled) {
		mw_filter_add(object->address);
		bloom_add(object->address);
		*countdown = mw_interval_draw(random, rate);
		result->live++;
	}
}

static int filters_compare(uint64_t megabytes, uint64_t rate)
{
	size_t count = megabytes * (1 << 20) / 900, done = 0;
	struct object *objects = calloc(count, sizeof(*objects));
	struct comparison result = { 0 };
	struct prng prng = { 1 };
	struct mw_random random;
	uint64_t countdown;

	mw_random_seed(&random, 1);
	countdown = mw_interval_draw(&random, rate);
	for (int round = 0; round <= 16; round++) {
		for (size_t i = 0; i < count; i++, done++)
			object_replace(&objects[round ? prng_below(&prng, count) : i], &prng,
				       &random, &countdown, rate, &result);
		if (round && !(round & (round - 1)))
			printf("heap replaced %2d times: %lu live samples, counters pass %.3f %%, "
			       "Bloom passes %.3f %% (%.0f %% of its bits set)\n",
			       round, (unsigned long)result.live,
			       100.0 * (double)result.counters_passed / (double)result.frees,
			       100.0 * (double)result.bloom_passed / (double)result.frees,
			       100.0 * (double)bloom_set / BLOOM_BITS);
		result.frees = result.counters_passed = result.bloom_passed = 0;
	}
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t tests = argc > 2 ? strtoull(argv[2], NULL, 10) : 0, passed = 0;

	if (argc > 3 && !strcmp(argv[1], "compare"))
		return filters_compare(tests, strtoull(argv[3], NULL, 10));
	for (uint64_t i = 0; i < tests; i++) {
		const void *address = (const void *)(uintptr_t)(i * 48);

		__asm__ volatile("" : "+r"(address));
		if (argc > 1 && argv[1][0] == 'c')
			passed += mw_filter_may_have(address);
		else if (argc > 1 && argv[1][0] == 'b')
			passed += bloom_may_have(address);
	}
	return passed != 0;
}
