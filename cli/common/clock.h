/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Times in nanoseconds: reading a clock, and adding what a user has chosen.
 */
#ifndef MW_CLI_CLOCK_H
#define MW_CLI_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t mw_clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* UINT64_MAX if it would be later than that: a time that never comes. */
static inline uint64_t mw_clock_add(uint64_t time_ns, uint64_t duration_ns)
{
	uint64_t sum;

	return __builtin_add_overflow(time_ns, duration_ns, &sum) ? UINT64_MAX : sum;
}

#endif /* MW_CLI_CLOCK_H */
