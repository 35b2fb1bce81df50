// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth test.
 */
#include "stale/trend.h"

#include <math.h>

/* A burst or two are no growth. */
#define PARTS_LEAST 3

#define CHANCE	    0.01

void mw_births_add(struct mw_births *births, uint64_t birth, uint64_t horizon)
{
	double share = horizon ? (double)birth / (double)horizon : 0;
	uint32_t part = share < 1 ? (uint32_t)(share * MW_BIRTHS_PARTS) : MW_BIRTHS_PARTS - 1;

	births->count++;
	births->parts |= 1U << part;
	if (birth > births->last)
		births->last = birth;
}

bool mw_births_have_stopped(const struct mw_births *births, uint64_t horizon)
{
	double silence;

	if (!births->count || births->last >= horizon)
		return false;
	silence = (double)(horizon - births->last) / (double)horizon;
	/* The chance that of so many births at random times none is in the silence. */
	return silence > 1.0 / 3 && (double)births->count * log1p(-silence) < log(CHANCE);
}

bool mw_births_are_spread(const struct mw_births *births)
{
	return __builtin_popcount(births->parts) >= PARTS_LEAST;
}
