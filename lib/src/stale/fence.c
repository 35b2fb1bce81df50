// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The upper fence of the adjusted boxplot.
 */
#include "stale/fence.h"

#include <math.h>

#include "stale/medcouple.h"

struct mw_fence mw_fence_of(const struct mw_sample *sample, const struct mw_fence_rule *rule)
{
	struct mw_fence fence = {
		.q1 = mw_sample_quantile(sample, 0.25),
		.median = mw_sample_quantile(sample, 0.5),
		.q3 = mw_sample_quantile(sample, 0.75),
		.medcouple = mw_medcouple(sample),
	};
	double distance = exp((fence.medcouple < 0 ? 4 : 3) * fence.medcouple) *
			  (fence.q3 - fence.q1);
	double least = fmax(rule->spread, rule->spread_share * fence.q3);

	/* The medcouple of equal observations may be 1 or -1, by a few others. */
	fence.flat = distance < least;
	fence.threshold = fence.q3 + rule->coefficient * fmax(distance, least) + rule->margin;
	return fence;
}
