/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Clocks, in nanoseconds.
 */
#ifndef _MW_HEAP_CLOCK_H
#define _MW_HEAP_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t mw_clock_read(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#endif
