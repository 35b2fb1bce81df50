/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How fast the live bytes of a curve grow, and whether that is a leak.
 */
#ifndef MW_HEAP_TREND_H
#define MW_HEAP_TREND_H

#include "heap/curves.h"

struct mw_trend {
	struct memwatch_heap_estimate per_hour; /* bytes */
	bool leak;
};

/* How many series of the curve have enough growth that it can be a leak. */
uint32_t mw_trend_candidates(const struct mw_curves *curves, const double *curve);

/*
 * The trend of all samples, or that of the survivors if this is a leak. @tests: the number of
 * tests of which one may find a leak by chance, with a probability of 1 %.
 */
struct mw_trend mw_trend_of(const struct mw_curves *curves, const double *curve, uint32_t tests);

#endif /* MW_HEAP_TREND_H */
