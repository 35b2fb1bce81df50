/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How many objects were allocated when, at all sites: the time is divided into cohorts of the same
 * width. When there are too many, each two become one, so that they always cover the whole time.
 */
#ifndef MW_STALE_COHORTS_H
#define MW_STALE_COHORTS_H

#include <stdint.h>

#define MW_COHORTS 128U

/**
 * struct mw_cohorts - the cohorts; zero has none
 * @shift: a cohort is 2 to the power of this wide, on the clock of the process
 * @allocated: number of objects that were allocated in each
 */
struct mw_cohorts {
	uint32_t shift;
	uint64_t allocated[MW_COHORTS];
};

/* An object was allocated at @now. */
void mw_cohorts_add(struct mw_cohorts *cohorts, uint64_t now);

/* The cohort of an object that was added. */
static inline uint32_t mw_cohorts_of(const struct mw_cohorts *cohorts, uint64_t birth)
{
	return (uint32_t)(birth >> cohorts->shift);
}

#endif /* MW_STALE_COHORTS_H */
