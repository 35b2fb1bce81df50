// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Random periods, see access-period.h.
 */
#include "stale/access-period.h"

#include <stdbool.h>

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014) */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* Of odd numbers above 2. The largest one needs 40 000 divisions. */
static bool is_prime(uint64_t n)
{
	for (uint64_t divisor = 3; divisor * divisor <= n; divisor += 2)
		if (n % divisor == 0)
			return false;
	return true;
}

uint64_t mw_access_period(uint64_t *state, uint64_t mean, uint32_t step)
{
	uint64_t middle = mean / step, period;

	if (middle < 16)
		return (middle ? middle : 1) * step;
	period = (middle - middle / 4 + next_random(state) % (middle / 2 + 1)) | 1;
	while (!is_prime(period))
		period += 2;
	return period * step;
}
