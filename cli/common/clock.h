/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reading a clock in nanoseconds.
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

#endif /* MW_CLI_CLOCK_H */
