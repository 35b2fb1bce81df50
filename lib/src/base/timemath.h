/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Saturating arithmetic on times and counts. Times are unsigned nanoseconds; MW_TIME_MAX
 * means "never". Other files use these functions to add and subtract times that they have
 * not compared before.
 */
#ifndef MW_BASE_TIMEMATH_H
#define MW_BASE_TIMEMATH_H

#include <stdint.h>
#include <time.h>

#define MW_TIME_MAX	UINT64_MAX
#define MW_NSEC_PER_SEC 1000000000ULL

/* a + b, or UINT64_MAX if that overflows */
static inline uint64_t mw_add_sat(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* a - b, or 0 if b is larger */
static inline uint64_t mw_sub_sat(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* a * b, or UINT64_MAX if that overflows */
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
 * floor(value * part / whole) for part <= whole and whole > 0. The differences of this for
 * increasing parts from 0 to whole split the value into shares that add up to it exactly.
 */
static inline uint64_t mw_share(uint64_t value, uint64_t part, uint64_t whole)
{
	if (part >= whole)
		return value;
	return (uint64_t)((unsigned __int128)value * part / whole);
}

/* The time of a clock CLOCK_*, or 0 if the system does not have it. */
static inline uint64_t mw_clock(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * MW_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

#endif /* MW_BASE_TIMEMATH_H */
