// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How fast the live bytes of each row grow: the slope of the least squares line through the
 * snapshots. Its error has two parts. What the points differ from the line is seen in the
 * residuals. What sampling adds is not, because a snapshot shares most of its samples with
 * the one before: their errors are the same, and the points lie on a line that is wrong. The
 * slope is a weighted sum of the changes between snapshots, so its variance follows from
 * that of the changes, which only new and freed samples have.
 *
 * What a program allocates for its current work comes and goes, and can hide a leak that is as
 * large. Where samples have identities, a second series of each row therefore counts only those
 * that were in the snapshot before: what lives for less than one interval is left out. A row
 * whose second series is that of a leak has the growth of that series.
 */
#include "heap/trend.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heap/estimate.h"
#include "heap/identity.h"

/* A leak has at least this many samples in its growth. */
#define LEAK_SAMPLES 5
/* With fewer snapshots, the second series would have too few points for a line. */
#define SURVIVAL_SNAPSHOTS 4
/* The probability that a row without a leak is called one, for all rows together. */
#define LEAK_ERROR  0.01
#define NS_PER_HOUR 3.6e12

/**
 * struct series - one value of each row for each snapshot
 * @profiles: the snapshots
 * @survivors: those with the samples that were in the snapshot before only, owned; or NULL
 * @hours: times of the snapshots
 * @live: by snapshot, then by row
 * @change_variance: variance of the change from the snapshot before
 * @total: sums over all rows, in row number @rows
 */
struct series {
	uint32_t snapshots, rows;
	const struct mw_prof_profile *profiles;
	struct mw_prof_profile *survivors;
	double *hours;
	struct mw_prof_sum *live;
	double *change_variance;
	bool identified;
};

static size_t place(const struct series *s, uint32_t snapshot, uint32_t row)
{
	return (size_t)snapshot * (s->rows + 1UL) + row;
}

static void add_live(struct series *s, uint32_t snapshot, uint32_t row,
		     const struct mw_prof_sum *sum)
{
	struct mw_prof_sum *live = &s->live[place(s, snapshot, row)];

	live->value += sum->value;
	live->variance += sum->variance;
}

static int fill_snapshot(struct series *s, const struct mw_heap_rows *rows, uint32_t snapshot)
{
	const struct mw_prof_profile *now = &s->profiles[snapshot];
	const struct mw_prof_profile *before = snapshot ? now - 1 : NULL;
	struct mw_identities old = { 0 }, new = { 0 };
	int err = 0;

	if (before && s->identified)
		err = mw_identities_init(&old, rows->heap, before)
			      ?: mw_identities_init(&new, rows->heap, now);
	for (uint32_t i = 0; i < now->nr_samples && !err; i++) {
		const struct mw_prof_sample *sample = &now->samples[i];
		const struct mw_prof_sum *sum = &sample->sum[MEMWATCH_HEAP_LIVE_BYTES];
		uint32_t row = mw_heap_rows_of(rows, sample->stack);

		add_live(s, snapshot, row, sum);
		add_live(s, snapshot, s->rows, sum);
		if (!before || !s->identified || mw_identities_have(&old, sample))
			continue;
		s->change_variance[place(s, snapshot, row)] += sum->variance;
		s->change_variance[place(s, snapshot, s->rows)] += sum->variance;
	}
	for (uint32_t i = 0; before && s->identified && i < before->nr_samples && !err; i++) {
		const struct mw_prof_sample *sample = &before->samples[i];
		const struct mw_prof_sum *sum = &sample->sum[MEMWATCH_HEAP_LIVE_BYTES];

		if (mw_identities_have(&new, sample))
			continue;
		s->change_variance[place(s, snapshot, mw_heap_rows_of(rows, sample->stack))] +=
			sum->variance;
		s->change_variance[place(s, snapshot, s->rows)] += sum->variance;
	}
	mw_identities_uninit(&old);
	mw_identities_uninit(&new);
	return err;
}

/*
 * The variance of the slope that sampling causes. @weight of a snapshot is its factor in the
 * slope; the factor of a change is the sum of those of all later snapshots. Without
 * identities, changes have at least the variance of the net change, and the values are taken
 * as independent.
 */
static double sampling_variance(const struct series *s, uint32_t row, const double *weight)
{
	double factor = 0, variance = 0;

	for (uint32_t i = s->snapshots - 1; i > 0; i--) {
		const struct mw_prof_sum *now = &s->live[place(s, i, row)];
		const struct mw_prof_sum *before = &s->live[place(s, i - 1, row)];

		factor += weight[i];
		if (s->identified)
			variance += factor * factor * s->change_variance[place(s, i, row)];
		else
			variance += factor * factor * fabs(now->variance - before->variance);
	}
	for (uint32_t i = 0; !s->identified && i < s->snapshots; i++)
		variance += weight[i] * weight[i] * s->live[place(s, i, row)].variance;
	return variance;
}

/* At least three of four changes are no decrease. */
static bool is_steady(const struct series *s, uint32_t row)
{
	uint32_t down = 0;

	for (uint32_t i = 1; i < s->snapshots; i++)
		down += s->live[place(s, i, row)].value < s->live[place(s, i - 1, row)].value;
	return 4 * down <= s->snapshots - 1;
}

/* The change between the first and the last snapshot, as a number of equal samples. */
static double growth_samples(const struct series *s, uint32_t row)
{
	const struct mw_prof_sum *first = &s->live[place(s, 0, row)];
	const struct mw_prof_sum *last = &s->live[place(s, s->snapshots - 1, row)];
	double growth = last->value - first->value;

	if (!(growth > 0))
		return 0;
	/* The weight of a sample; without variance every allocation was recorded. */
	return last->variance > 0 ? growth / (last->variance / last->value) : INFINITY;
}

static struct mw_trend trend_of(const struct series *s, uint32_t row, const double *weight,
				uint32_t candidates)
{
	double slope = 0, mean_y = 0, mean_x = 0, residuals = 0, sampling, fit = 0, level;
	uint32_t df = s->snapshots - 2;
	double t = mw_quantile_normal(0.975), strict;
	struct mw_trend trend;

	for (uint32_t i = 0; i < s->snapshots; i++) {
		slope += weight[i] * s->live[place(s, i, row)].value;
		mean_y += s->live[place(s, i, row)].value / s->snapshots;
		mean_x += s->hours[i] / s->snapshots;
	}
	for (uint32_t i = 0; i < s->snapshots; i++) {
		double r = s->live[place(s, i, row)].value - mean_y -
			   slope * (s->hours[i] - mean_x);

		residuals += r * r;
		fit += weight[i] * weight[i];
	}
	sampling = sampling_variance(s, row, weight);
	level = 1 - LEAK_ERROR / (candidates ? candidates : 1);
	strict = mw_quantile_normal(level) * sqrt(sampling);
	t *= sqrt(sampling);
	if (df) {
		double error = sqrt(residuals / df * fit);

		t = hypot(t, mw_quantile_t(0.975, df) * error);
		strict = hypot(strict, mw_quantile_t(level, df) * error);
	}
	trend.per_hour = mw_estimate_around(slope, t);
	trend.leak = slope > 0 && slope - strict > 0 && is_steady(s, row) &&
		     growth_samples(s, row) >= LEAK_SAMPLES;
	return trend;
}

/* The factor of each snapshot in the slope of the least squares line. */
static int slope_weights(const struct series *s, double *weight)
{
	double mean = 0, sum = 0;

	for (uint32_t i = 0; i < s->snapshots; i++)
		mean += s->hours[i] / s->snapshots;
	for (uint32_t i = 0; i < s->snapshots; i++)
		sum += (s->hours[i] - mean) * (s->hours[i] - mean);
	if (!(sum > 0))
		return -ENODATA;
	for (uint32_t i = 0; i < s->snapshots; i++)
		weight[i] = (s->hours[i] - mean) / sum;
	return 0;
}

/* The samples of @now that are in the snapshot @before as well. */
static int survivors_fill(const struct memwatch_heap *heap, const struct mw_prof_profile *before,
			  const struct mw_prof_profile *now, struct mw_prof_profile *ret)
{
	struct mw_identities old = { 0 };
	int err = mw_identities_init(&old, heap, before);

	*ret = *now;
	ret->nr_samples = 0;
	ret->samples = calloc(now->nr_samples + 1UL, sizeof(*ret->samples));
	if (!ret->samples)
		err = -ENOMEM;
	for (uint32_t i = 0; i < now->nr_samples && !err; i++)
		if (mw_identities_have(&old, &now->samples[i]))
			ret->samples[ret->nr_samples++] = now->samples[i];
	mw_identities_uninit(&old);
	return err;
}

/* Replaces the snapshots by their survivors; the first one has none. */
static int series_keep_survivors(struct series *s, const struct memwatch_heap *heap)
{
	int err = 0;

	s->survivors = calloc(s->snapshots, sizeof(*s->survivors));
	if (!s->survivors)
		return -ENOMEM;
	for (uint32_t i = 1; i < s->snapshots && !err; i++)
		err = survivors_fill(heap, &s->profiles[i - 1], &s->profiles[i],
				     &s->survivors[i - 1]);
	s->profiles = s->survivors;
	s->snapshots--;
	return err;
}

static void series_begin(struct series *s, const struct mw_heap_rows *rows)
{
	s->snapshots = rows->heap->nr_profiles;
	s->profiles = rows->heap->profiles;
	s->rows = rows->count;
	s->identified = true;
	for (uint32_t i = 0; i < s->snapshots; i++)
		s->identified &= mw_identities_same_process(&s->profiles[i], &s->profiles[0]);
}

static int series_fill(struct series *s, const struct mw_heap_rows *rows)
{
	size_t places = (size_t)s->snapshots * (s->rows + 1UL);
	int err = 0;

	s->hours = calloc(s->snapshots, sizeof(*s->hours));
	s->live = calloc(places, sizeof(*s->live));
	s->change_variance = calloc(places, sizeof(*s->change_variance));
	if (!s->hours || !s->live || !s->change_variance)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->snapshots && !err; i++) {
		if (!s->profiles[i].info.end_ns)
			return -ENODATA;
		s->hours[i] = ((double)s->profiles[i].info.end_ns -
			       (double)s->profiles[0].info.end_ns) /
			      NS_PER_HOUR;
		err = fill_snapshot(s, rows, i);
	}
	return err;
}

static void series_uninit(struct series *s)
{
	for (uint32_t i = 0; s->survivors && i < s->snapshots; i++)
		free(s->survivors[i].samples);
	free(s->survivors);
	free(s->hours);
	free(s->live);
	free(s->change_variance);
}

/* Sets the trends of all rows and of their total; with survivors, only those of leaks. */
static int fill_trends(const struct series *s, struct mw_trend *trends, uint32_t all_series)
{
	double *weight = reallocarray(NULL, s->snapshots + 1UL, sizeof(*weight));
	int err = weight ? slope_weights(s, weight) : -ENOMEM;
	uint32_t candidates = 0, total = s->survivors ? 0 : 1;

	for (uint32_t i = 0; i < s->rows && !err; i++)
		candidates += growth_samples(s, i) >= LEAK_SAMPLES;
	for (uint32_t i = 0; i < s->rows + total && !err; i++) {
		struct mw_trend trend = trend_of(s, i, weight, candidates * all_series);

		if (!s->survivors || trend.leak)
			trends[i] = trend;
	}
	free(weight);
	return err;
}

static int trends_of_survivors(const struct mw_heap_rows *rows, struct mw_trend *trends)
{
	struct series s = { 0 };
	int err;

	series_begin(&s, rows);
	err = series_keep_survivors(&s, rows->heap) ?: series_fill(&s, rows);
	if (!err)
		err = fill_trends(&s, trends, 2);
	series_uninit(&s);
	/* All snapshots but the first can have the same time. */
	return err == -ENODATA ? 0 : err;
}

int mw_trend_new(const struct mw_heap_rows *rows, struct mw_trend **ret)
{
	struct series s = { 0 };
	struct mw_trend *trends;
	bool survivors;
	int err;

	if (rows->heap->nr_profiles < 2)
		return -ENODATA;
	trends = reallocarray(NULL, rows->count + 1UL, sizeof(*trends));
	if (!trends)
		return -ENOMEM;
	series_begin(&s, rows);
	survivors = s.identified && s.snapshots >= SURVIVAL_SNAPSHOTS;
	err = series_fill(&s, rows) ?: fill_trends(&s, trends, survivors ? 2 : 1);
	series_uninit(&s);
	if (!err && survivors)
		err = trends_of_survivors(rows, trends);
	if (err)
		free(trends);
	else
		*ret = trends;
	return err;
}
