// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Curves of live memory.
 */
#include "stale/curve.h"

#include <string.h>

#define DISTANCE_FIRST_NS 1000

void mw_curve_clock_init(struct mw_curve_clock *clock, uint64_t first_ns)
{
	*clock = (struct mw_curve_clock){ .first_ns = first_ns, .distance_ns = DISTANCE_FIRST_NS };
}

void mw_curve_clock_thin(struct mw_curve_clock *clock)
{
	clock->distance_ns *= 2;
	clock->count /= 2;
}

/* Points 1, 3, 5 and so on stay: they are at the multiples of the doubled distance. */
void mw_curve_thin(struct mw_curve_point *points)
{
	for (uint32_t i = 0; i < MW_CURVE_POINTS / 2; i++)
		points[i] = points[2 * i + 1];
	memset(points + MW_CURVE_POINTS / 2, 0, MW_CURVE_POINTS / 2 * sizeof(*points));
}
