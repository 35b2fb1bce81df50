/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The pseudo-random numbers of the tests: splitmix64 (Steele, Lea and Flood, OOPSLA
 * 2014). A seed gives the same sequence on every machine, so that a failure can be
 * repeated.
 */
#ifndef _MW_SELFTESTS_PRNG_H
#define _MW_SELFTESTS_PRNG_H

#include <stdint.h>

/* Set @state to the seed, which may have any value. */
struct prng {
	uint64_t state;
};

static inline uint64_t prng_next(struct prng *prng)
{
	uint64_t z = prng->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* A number from 0 to @n - 1. Its bias is less than n / 2^64. */
static inline uint64_t prng_below(struct prng *prng, uint64_t n)
{
	return prng_next(prng) % n;
}

#endif /* _MW_SELFTESTS_PRNG_H */
