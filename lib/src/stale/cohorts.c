// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Allocations by time.
 */
#include "stale/cohorts.h"

#include <string.h>

static void widen(struct mw_cohorts *cohorts)
{
	uint64_t *allocated = cohorts->allocated;

	for (uint32_t i = 0; i < MW_COHORTS / 2; i++)
		allocated[i] = allocated[2 * i] + allocated[2 * i + 1];
	memset(allocated + MW_COHORTS / 2, 0, MW_COHORTS / 2 * sizeof(*allocated));
	cohorts->shift++;
}

void mw_cohorts_add(struct mw_cohorts *cohorts, uint64_t now)
{
	while (now >> cohorts->shift >= MW_COHORTS)
		widen(cohorts);
	cohorts->allocated[mw_cohorts_of(cohorts, now)]++;
}
