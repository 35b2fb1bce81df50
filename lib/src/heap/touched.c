// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How much of the live bytes of each row was touched not long ago.
 *
 * What was allocated in the window was touched in it. Of the older samples, those that are watched
 * say which share of the bytes was touched; each has the weight of all that it was chosen from.
 */
#include "heap/touched.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "heap/estimate.h"

static const double window_seconds[MEMWATCH_HEAP_WINDOWS] = {
	[MEMWATCH_HEAP_MINUTE] = 60,
	[MEMWATCH_HEAP_HOUR] = 3600,
	[MEMWATCH_HEAP_DAY] = 86400,
};

/* Sums of one row and one window. */
struct evidence {
	struct mw_prof_sum young, old;
	double weight, weight_squares, touched; /* of the watched ones among the old */
	bool is_blind;				/* an old one is of a kind that is never watched */
};

static bool is_within(const struct mw_prof_profile *profile, int64_t ns, int window)
{
	return ((double)profile->info.watch_ns - (double)ns) / 1e9 <= window_seconds[window];
}

static void add_sample(struct evidence *evidence, const struct mw_prof_profile *profile,
		       const struct mw_prof_sample *sample)
{
	const struct mw_prof_sum *bytes = &sample->sum[MEMWATCH_HEAP_LIVE_BYTES];

	for (int w = 0; w < MEMWATCH_HEAP_WINDOWS; w++) {
		bool young = is_within(profile, sample->birth_ns, w);
		struct mw_prof_sum *sum = young ? &evidence[w].young : &evidence[w].old;

		sum->value += bytes->value;
		sum->variance += bytes->variance;
		evidence[w].is_blind |= !young && sample->size < profile->info.watch_least;
	}
}

static void add_watch(struct evidence *evidence, const struct mw_prof_profile *profile,
		      const struct mw_prof_watch *watch)
{
	const struct mw_prof_sample *sample = &profile->samples[watch->sample];
	double weight = sample->sum[MEMWATCH_HEAP_LIVE_BYTES].value * watch->weight;

	for (int w = 0; w < MEMWATCH_HEAP_WINDOWS; w++) {
		if (is_within(profile, sample->birth_ns, w))
			continue;
		evidence[w].weight += weight;
		evidence[w].weight_squares += weight * weight;
		if (is_within(profile, watch->touched_ns, w))
			evidence[w].touched += weight;
	}
}

/* The share of the weight that was touched, with the interval of Wilson. */
static struct memwatch_heap_estimate share_of(const struct evidence *evidence)
{
	double n, share, middle, error, z = mw_quantile_normal(0.975);

	if (!(evidence->weight > 0))
		return mw_estimate_around(NAN, NAN);
	n = evidence->weight * evidence->weight / evidence->weight_squares;
	share = evidence->touched / evidence->weight;
	middle = (share + z * z / (2 * n)) / (1 + z * z / n);
	error = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n));
	return (struct memwatch_heap_estimate){ share, fmax(0, fmin(share, middle - error)),
						fmin(1, fmax(share, middle + error)) };
}

/*
 * The young bytes and the share of the old ones. The interval of a sum or a product of independent
 * estimates has, on each side, the distances of their intervals as the legs of a triangle.
 */
static struct memwatch_heap_estimate estimate_of(const struct evidence *evidence)
{
	struct memwatch_heap_estimate young = mw_estimate_sum(evidence->young, true);
	struct memwatch_heap_estimate old = mw_estimate_sum(evidence->old, true);
	struct memwatch_heap_estimate share = mw_estimate_around(0, 0), ret;

	if (evidence->old.value > 0)
		share = evidence->is_blind ? mw_estimate_around(NAN, NAN) : share_of(evidence);
	ret.value = young.value + share.value * old.value;
	ret.low = ret.value -
		  hypot(young.value - young.low, hypot(old.value * (share.value - share.low),
						       share.value * (old.value - old.low)));
	ret.high = ret.value +
		   hypot(young.high - young.value, hypot(old.value * (share.high - share.value),
							 share.value * (old.high - old.value)));
	if (ret.low < 0)
		ret.low = 0;
	return ret;
}

static void fill_row(const struct mw_prof_profile *profile, const struct evidence *evidence,
		     struct mw_touched *touched)
{
	for (int w = 0; w < MEMWATCH_HEAP_WINDOWS; w++) {
		bool is_exact = (double)profile->info.watch_step_ns / 1e9 <= window_seconds[w];

		touched->window[w] = profile->info.watch_ns && is_exact
					     ? estimate_of(&evidence[w])
					     : mw_estimate_around(NAN, NAN);
	}
}

/* The elements of @evidence are those of the first row, then those of the second one, and so on. */
static void collect(const struct mw_heap_rows *rows, const struct mw_prof_profile *profile,
		    struct evidence *evidence, struct mw_touched *touched)
{
	uint32_t last = rows->count;

	for (uint32_t i = 0; i < profile->nr_samples; i++) {
		const struct mw_prof_sample *sample = &profile->samples[i];
		uint32_t row = mw_heap_rows_of(rows, sample->stack);

		if (sample->birth_ns == MW_PROF_BIRTH_UNKNOWN || sample->is_mapped)
			continue;
		add_sample(&evidence[(size_t)last * MEMWATCH_HEAP_WINDOWS], profile, sample);
		if (row != MW_ROW_NONE)
			add_sample(&evidence[(size_t)row * MEMWATCH_HEAP_WINDOWS], profile, sample);
	}
	for (uint32_t i = 0; i < profile->nr_watches; i++) {
		const struct mw_prof_watch *watch = &profile->watches[i];
		uint32_t row = mw_heap_rows_of(rows, profile->samples[watch->sample].stack);

		add_watch(&evidence[(size_t)last * MEMWATCH_HEAP_WINDOWS], profile, watch);
		touched[last].watched++;
		touched[last].parts += watch->is_part;
		if (row == MW_ROW_NONE)
			continue;
		add_watch(&evidence[(size_t)row * MEMWATCH_HEAP_WINDOWS], profile, watch);
		touched[row].watched++;
		touched[row].parts += watch->is_part;
	}
}

int mw_touched_new(const struct mw_heap_rows *rows, const struct mw_prof_profile *profile,
		   struct mw_touched **ret)
{
	struct evidence *evidence = calloc((rows->count + 1UL) * MEMWATCH_HEAP_WINDOWS,
					   sizeof(*evidence));
	struct mw_touched *touched = calloc(rows->count + 1UL, sizeof(*touched));

	if (!evidence || !touched) {
		free(evidence);
		free(touched);
		return -ENOMEM;
	}
	collect(rows, profile, evidence, touched);
	for (uint32_t i = 0; i <= rows->count; i++)
		fill_row(profile, &evidence[(size_t)i * MEMWATCH_HEAP_WINDOWS], &touched[i]);
	free(evidence);
	*ret = touched;
	return 0;
}
