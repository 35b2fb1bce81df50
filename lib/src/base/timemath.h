/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Arithmetic on times and counts that cannot overflow. Times are unsigned
 * nanoseconds; 0 is the beginning and MW_TIME_MAX is "never". No other file
 * adds or subtracts times that it has not compared first.
 */
#ifndef MW_TIMEMATH_H
#define MW_TIMEMATH_H

#include <stdint.h>
#include <time.h>

#define MW_TIME_MAX	UINT64_MAX
#define MW_NSEC_PER_SEC 1000000000ULL

/* a + b, or the largest number */
static inline uint64_t mw_add_sat(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* a - b, or 0 */
static inline uint64_t mw_sub_sat(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* a * b, or the largest number */
static inline uint64_t mw_mul_sat(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static inline uint64_t mw_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t mw_max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * floor(value * part / whole) for part <= whole, whole > 0. With part running
 * from 0 to whole, the differences of neighbours are a split of value that
 * adds up to it exactly.
 */
static inline uint64_t mw_share(uint64_t value, uint64_t part, uint64_t whole)
{
	if (part >= whole)
		return value;
	return (uint64_t)((unsigned __int128)value * part / whole);
}

/* Now, on a clock of the CLOCK_* family; 0 if there is no such clock. */
static inline uint64_t mw_clock(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * MW_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

#endif /* MW_TIMEMATH_H */
