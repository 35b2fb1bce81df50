// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The live bytes of each row in each snapshot.
 */
#include "heap/curves.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "heap/identity.h"

/* With fewer snapshots, the second series would have too few points for a line. */
#define SURVIVAL_SNAPSHOTS 4
#define NS_PER_HOUR	   3.6e12

/**
 * struct filling - a series that is filled
 * @profiles: its snapshots
 */
struct filling {
	struct mw_curves *curves;
	const struct mw_heap_rows *rows;
	const struct mw_series *series;
	const struct mw_prof_profile *profiles;
};

/* Adds to the row of the sample and to all rows together. */
static void add_value(const struct filling *f, const struct mw_prof_sample *sample,
		      uint32_t snapshot, enum mw_curve_part part, double value)
{
	uint32_t row = mw_heap_rows_of(f->rows, sample->stack);
	size_t at = f->series->at + part * f->series->snapshots + snapshot;

	mw_curves_at(f->curves, row)[at] += value;
	mw_curves_at(f->curves, f->rows->count)[at] += value;
}

/* The variance of what @profile has and @other has not. */
static int add_change(const struct filling *f, uint32_t snapshot,
		      const struct mw_prof_profile *profile, const struct mw_prof_profile *other)
{
	struct mw_identities known = { 0 };
	int err = mw_identities_init(&known, f->rows->heap, other);

	for (uint32_t i = 0; i < profile->nr_samples && !err; i++)
		if (!mw_identities_have(&known, &profile->samples[i]))
			add_value(f, &profile->samples[i], snapshot, MW_CURVE_CHANGE,
				  profile->samples[i].sum[MEMWATCH_HEAP_LIVE_BYTES].variance);
	mw_identities_uninit(&known);
	return err;
}

static int fill_snapshot(const struct filling *f, uint32_t snapshot)
{
	const struct mw_prof_profile *now = &f->profiles[snapshot];

	for (uint32_t i = 0; i < now->nr_samples; i++) {
		const struct mw_prof_sum *sum = &now->samples[i].sum[MEMWATCH_HEAP_LIVE_BYTES];

		add_value(f, &now->samples[i], snapshot, MW_CURVE_LIVE, sum->value);
		add_value(f, &now->samples[i], snapshot, MW_CURVE_VARIANCE, sum->variance);
	}
	if (!snapshot || !f->series->identified)
		return 0;
	return add_change(f, snapshot, now, now - 1) ?: add_change(f, snapshot, now - 1, now);
}

/*
 * Without identities, a change has at least the variance of the net change. The values are
 * then taken as independent.
 */
static void guess_change(const struct filling *f, uint32_t row)
{
	const struct mw_series *s = f->series;
	double *curve = mw_curves_at(f->curves, row);
	const double *variance = mw_curve_part(s, curve, MW_CURVE_VARIANCE);

	for (uint32_t i = 1; i < s->snapshots; i++)
		curve[s->at + MW_CURVE_CHANGE * s->snapshots + i] = fabs(variance[i] -
									 variance[i - 1]);
}

static int fill_series(struct mw_curves *curves, const struct mw_heap_rows *rows,
		       const struct mw_series *series, const struct mw_prof_profile *profiles)
{
	struct filling f = { curves, rows, series, profiles };
	int err = 0;

	for (uint32_t i = 0; i < series->snapshots && !err; i++)
		err = fill_snapshot(&f, i);
	for (uint32_t row = 0; row <= rows->count && !series->identified && !err; row++)
		guess_change(&f, row);
	return err;
}

/* Sets the times of the last @s->snapshots of the profiles, and what follows from them. */
static int fill_times(struct mw_series *s, const struct memwatch_heap *heap)
{
	const struct mw_prof_profile *first = &heap->profiles[heap->nr_profiles - s->snapshots];
	double mean = 0, sum = 0;

	s->hours = calloc(s->snapshots, sizeof(*s->hours));
	s->weight = calloc(s->snapshots, sizeof(*s->weight));
	if (!s->hours || !s->weight)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->snapshots; i++) {
		if (!first[i].info.end_ns)
			return -ENODATA;
		s->hours[i] = ((double)first[i].info.end_ns -
			       (double)heap->profiles[0].info.end_ns) /
			      NS_PER_HOUR;
		mean += s->hours[i] / s->snapshots;
	}
	for (uint32_t i = 0; i < s->snapshots; i++)
		sum += (s->hours[i] - mean) * (s->hours[i] - mean);
	if (!(sum > 0))
		return -ENODATA;
	for (uint32_t i = 0; i < s->snapshots; i++)
		s->weight[i] = (s->hours[i] - mean) / sum;
	return 0;
}

static int add_series(struct mw_curves *curves, const struct memwatch_heap *heap,
		      uint32_t snapshots, bool identified)
{
	struct mw_series *s = &curves->series[curves->nr];

	*s = (struct mw_series){ .snapshots = snapshots,
				 .at = curves->width,
				 .identified = identified };
	curves->nr++;
	curves->width += MW_CURVE_PARTS * snapshots;
	return fill_times(s, heap);
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

/* The first snapshot has no survivors. */
static int fill_survivors(struct mw_curves *curves, const struct mw_heap_rows *rows)
{
	const struct mw_series *s = &curves->series[1];
	struct mw_prof_profile *survivors = calloc(s->snapshots, sizeof(*survivors));
	int err = survivors ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < s->snapshots && !err; i++)
		err = survivors_fill(rows->heap, &rows->heap->profiles[i],
				     &rows->heap->profiles[i + 1], &survivors[i]);
	if (!err)
		err = fill_series(curves, rows, s, survivors);
	for (uint32_t i = 0; survivors && i < s->snapshots; i++)
		free(survivors[i].samples);
	free(survivors);
	return err;
}

static bool is_one_process(const struct memwatch_heap *heap)
{
	for (uint32_t i = 1; i < heap->nr_profiles; i++)
		if (!mw_identities_same_process(&heap->profiles[i], &heap->profiles[0]))
			return false;
	return true;
}

int mw_curves_init(struct mw_curves *curves, const struct mw_heap_rows *rows)
{
	const struct memwatch_heap *heap = rows->heap;
	bool identified = is_one_process(heap);
	int err;

	*curves = (struct mw_curves){ 0 };
	if (heap->nr_profiles < 2)
		return -ENODATA;
	err = add_series(curves, heap, heap->nr_profiles, identified);
	if (!err && identified && heap->nr_profiles >= SURVIVAL_SNAPSHOTS)
		err = add_series(curves, heap, heap->nr_profiles - 1, true);
	/* All snapshots but the first can have the same time. */
	if (err == -ENODATA && curves->nr == 2) {
		curves->nr = 1;
		err = 0;
	}
	if (err)
		return err;
	curves->values = calloc((rows->count + 1UL) * curves->width, sizeof(*curves->values));
	if (!curves->values)
		return -ENOMEM;
	err = fill_series(curves, rows, &curves->series[0], heap->profiles);
	if (!err && curves->nr == 2)
		err = fill_survivors(curves, rows);
	return err;
}

void mw_curves_uninit(struct mw_curves *curves)
{
	for (uint32_t i = 0; i < 2; i++) {
		free(curves->series[i].hours);
		free(curves->series[i].weight);
	}
	free(curves->values);
	*curves = (struct mw_curves){ 0 };
}
