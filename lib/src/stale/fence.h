/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The upper fence of the adjusted boxplot (Hubert and Vandervieren, 2008): observations above it
 * are outliers of a skewed distribution. With the quartiles Q1 and Q3 and the medcouple MC it is
 *	Q3 + c exp(3 MC) (Q3 - Q1)	if MC >= 0
 *	Q3 + c exp(4 MC) (Q3 - Q1)	if MC < 0
 */
#ifndef MW_STALE_FENCE_H
#define MW_STALE_FENCE_H

#include "stale/sample.h"

/* A distribution cannot be told from fewer observations. */
#define MW_FENCE_LEAST 20

/**
 * struct mw_fence_rule - how fences are computed
 * @coefficient: c
 * @spread: lower limit of what c is multiplied by; 0 would make outliers of all above Q3
 * @spread_share: another lower limit, as a share of Q3
 * @margin: is added
 */
struct mw_fence_rule {
	double coefficient;
	double spread;
	double spread_share;
	double margin;
};

/**
 * struct mw_fence - the fence of a sample
 * @q1, @median, @q3: quartiles
 * @medcouple: MC
 * @threshold: the fence
 * @flat: a lower limit was used
 */
struct mw_fence {
	double q1, median, q3;
	double medcouple;
	double threshold;
	int flat;
};

/* Of a sorted sample with at least one observation. */
struct mw_fence mw_fence_of(const struct mw_sample *sample, const struct mw_fence_rule *rule);

#endif /* MW_STALE_FENCE_H */
