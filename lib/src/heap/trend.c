// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How fast the live bytes of a curve grow: the slope of the least squares line through the
 * snapshots. Its error has two parts. What the points differ from the line is seen in the
 * residuals. What sampling adds is not, because a snapshot shares most of its samples with
 * the one before: their errors are the same, and the points lie on a line that is wrong. The
 * slope is a weighted sum of the changes between snapshots, so its variance follows from
 * that of the changes, which only new and freed samples have.
 */
#include "heap/trend.h"

#include <math.h>

#include "heap/estimate.h"

/* A leak has at least this many samples in its growth. */
#define LEAK_SAMPLES 5
/* The probability that one of the curves without a leak is called one. */
#define LEAK_ERROR 0.01

/*
 * The variance of the slope that sampling causes. The weight of a snapshot is its factor in
 * the slope; the factor of a change is the sum of those of all later snapshots.
 */
static double sampling_variance(const struct mw_series *s, const double *curve)
{
	const double *change = mw_curve_part(s, curve, MW_CURVE_CHANGE);
	const double *values = mw_curve_part(s, curve, MW_CURVE_VARIANCE);
	double factor = 0, variance = 0;

	for (uint32_t i = s->snapshots - 1; i > 0; i--) {
		factor += s->weight[i];
		variance += factor * factor * change[i];
	}
	for (uint32_t i = 0; !s->identified && i < s->snapshots; i++)
		variance += s->weight[i] * s->weight[i] * values[i];
	return variance;
}

/* The variance of the slope that the distances of the values from the line cause. */
static double residual_variance(const struct mw_series *s, const double *live, double slope)
{
	double mean_y = 0, mean_x = 0, residuals = 0, fit = 0;

	for (uint32_t i = 0; i < s->snapshots; i++) {
		mean_y += live[i] / s->snapshots;
		mean_x += s->hours[i] / s->snapshots;
	}
	for (uint32_t i = 0; i < s->snapshots; i++) {
		double r = live[i] - mean_y - slope * (s->hours[i] - mean_x);

		residuals += r * r;
		fit += s->weight[i] * s->weight[i];
	}
	return residuals / (s->snapshots - 2) * fit;
}

/* At least three of four changes are no decrease. */
static bool is_steady(const struct mw_series *s, const double *live)
{
	uint32_t down = 0;

	for (uint32_t i = 1; i < s->snapshots; i++)
		down += live[i] < live[i - 1];
	return 4 * down <= s->snapshots - 1;
}

/* The change between the first and the last snapshot, as a number of equal samples. */
static double growth_samples(const struct mw_series *s, const double *curve)
{
	const double *live = mw_curve_part(s, curve, MW_CURVE_LIVE);
	double variance = mw_curve_part(s, curve, MW_CURVE_VARIANCE)[s->snapshots - 1];
	double last = live[s->snapshots - 1], growth = last - live[0];

	if (!(growth > 0))
		return 0;
	/* The weight of a sample; without variance every allocation was recorded. */
	return variance > 0 ? growth / (variance / last) : INFINITY;
}

static struct mw_trend trend_of_series(const struct mw_series *s, const double *curve,
				       uint32_t tests)
{
	const double *live = mw_curve_part(s, curve, MW_CURVE_LIVE);
	double sampling = sqrt(sampling_variance(s, curve)), slope = 0, t, strict;
	double level = 1 - LEAK_ERROR / (tests ? tests : 1);
	uint32_t df = s->snapshots - 2;
	struct mw_trend trend;

	for (uint32_t i = 0; i < s->snapshots; i++)
		slope += s->weight[i] * live[i];
	t = mw_quantile_normal(0.975) * sampling;
	strict = mw_quantile_normal(level) * sampling;
	if (df) {
		double error = sqrt(residual_variance(s, live, slope));

		t = hypot(t, mw_quantile_t(0.975, df) * error);
		strict = hypot(strict, mw_quantile_t(level, df) * error);
	}
	trend.per_hour = mw_estimate_around(slope, t);
	trend.leak = slope > 0 && slope - strict > 0 && is_steady(s, live) &&
		     growth_samples(s, curve) >= LEAK_SAMPLES;
	return trend;
}

uint32_t mw_trend_candidates(const struct mw_curves *curves, const double *curve)
{
	uint32_t candidates = 0;

	for (uint32_t i = 0; i < curves->nr; i++)
		candidates += growth_samples(&curves->series[i], curve) >= LEAK_SAMPLES;
	return candidates;
}

struct mw_trend mw_trend_of(const struct mw_curves *curves, const double *curve, uint32_t tests)
{
	struct mw_trend trend = trend_of_series(&curves->series[0], curve, tests);

	if (curves->nr == 2) {
		struct mw_trend old = trend_of_series(&curves->series[1], curve, tests);

		if (old.leak)
			return old;
	}
	return trend;
}
