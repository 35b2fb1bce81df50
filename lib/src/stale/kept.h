/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Whether a site that frees hardly anything has abandoned what it keeps. Its own objects cannot
 * tell: none of them shows how long they are needed. Two other things can.
 *
 * CONTEMPORARIES are the objects of other sites that were allocated at the same times. If most of
 * them live as well, the program was building something then. If nearly all were freed, the
 * objects of this site are outliers among them.
 *
 * USE. What is kept on purpose is looked up now and then, also when it is old. What was lost is
 * not. This needs accesses that were sampled.
 */
#ifndef MW_STALE_KEPT_H
#define MW_STALE_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "stale/cohorts.h"
#include "stale/objects.h"

/**
 * struct mw_kept - the live objects of a site; zero has none
 * @live: their number in each cohort
 * @stale: of those, the number of those that are stale
 * @all_stale: the sum of @stale
 * @used: objects that are old enough to be stale, and that were seen in use
 * @used_late: of those, the ones that were used at an age at which others are stale
 */
struct mw_kept {
	uint64_t live[MW_COHORTS], stale[MW_COHORTS];
	uint64_t all_stale;
	uint64_t used, used_late;
};

/* Adds an object at the time @now. Objects with more staleness than @limit are stale. */
void mw_kept_add(struct mw_kept *kept, const struct mw_cohorts *cohorts,
		 const struct mw_object *object, uint64_t now, double limit);

/* @live: number of live objects of all sites in each cohort */
bool mw_kept_is_abandoned(const struct mw_kept *kept, const struct mw_cohorts *cohorts,
			  const uint64_t *live);

#endif /* MW_STALE_KEPT_H */
