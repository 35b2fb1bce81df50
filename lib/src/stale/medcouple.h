/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The medcouple, a robust measure of skewness (Brys, Hubert and Struyf, 2004): the median of
 *	h(a, b) = ((a - m) - (m - b)) / (a - b)
 * over all pairs of an observation a at or above the median m and an observation b at or below
 * it. Where both are equal to m, as in k observations, h of the i-th and the j-th of them is the
 * sign of k - 1 - i - j.
 */
#ifndef MW_STALE_MEDCOUPLE_H
#define MW_STALE_MEDCOUPLE_H

#include "stale/sample.h"

/* Of a sorted sample with at least one observation; from -1 to 1. */
double mw_medcouple(const struct mw_sample *sample);

#endif /* MW_STALE_MEDCOUPLE_H */
