// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What a site keeps.
 */
#include "stale/kept.h"

#include "stale/fence.h"

/* With more contemporaries that live, objects are no outliers among them. */
#define CONTEMPORARIES_MAX 0.25

/* Nearly all objects that were freed were less stale than the limit, so few may be an accident. */
#define USED_LATE_MAX 0.01

void mw_kept_add(struct mw_kept *kept, const struct mw_cohorts *cohorts,
		 const struct mw_object *object, uint64_t now, double limit)
{
	uint32_t cohort = mw_cohorts_of(cohorts, object->birth);

	kept->live[cohort]++;
	if ((double)(now - object->last) > limit) {
		kept->stale[cohort]++;
		kept->all_stale++;
	}
	if (!object->accesses || (double)(now - object->birth) <= limit)
		return;
	kept->used++;
	if ((double)(object->last - object->birth) > limit)
		kept->used_late++;
}

/* Whether the contemporaries of the stale objects are known, and nearly all were freed. */
static bool have_freed_contemporaries(const struct mw_kept *kept, const struct mw_cohorts *cohorts,
				      const uint64_t *live)
{
	uint64_t contemporaries = 0;
	double expected = 0;

	for (uint32_t i = 0; i < MW_COHORTS; i++) {
		uint64_t others = cohorts->allocated[i] - kept->live[i];

		if (!kept->stale[i])
			continue;
		contemporaries += others;
		/* An object without contemporaries is no outlier. */
		expected += (double)kept->stale[i] *
			    (others ? (double)(live[i] - kept->live[i]) / (double)others : 1);
	}
	return contemporaries >= MW_FENCE_LEAST &&
	       expected < CONTEMPORARIES_MAX * (double)kept->all_stale;
}

bool mw_kept_is_abandoned(const struct mw_kept *kept, const struct mw_cohorts *cohorts,
			  const uint64_t *live)
{
	return kept->used >= MW_FENCE_LEAST &&
	       (double)kept->used_late <= USED_LATE_MAX * (double)kept->used &&
	       have_freed_contemporaries(kept, cohorts, live);
}
