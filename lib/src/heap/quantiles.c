// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Median and 90th percentile of the ages and lifetimes of the samples of each row.
 */
#include "heap/quantiles.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct observation {
	uint32_t row;
	double seconds;
	double weight;
};

struct observations {
	struct observation *list;
	size_t count;
};

static int compare_observations(const void *a, const void *b)
{
	const struct observation *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return x->seconds < y->seconds ? -1 : x->seconds > y->seconds;
}

static int compare_seconds(const void *a, const void *b)
{
	const struct observation *x = a, *y = b;

	return x->seconds < y->seconds ? -1 : x->seconds > y->seconds;
}

static void quantiles_of(const struct observation *list, size_t count, double result[MW_QUANTILES])
{
	static const double shares[MW_QUANTILES] = { 0.5, 0.9 };
	double total = 0, sum = 0;
	size_t at = 0;

	for (size_t i = 0; i < count; i++)
		total += list[i].weight;
	for (int q = 0; q < MW_QUANTILES; q++) {
		while (at + 1 < count && sum + list[at].weight < shares[q] * total)
			sum += list[at++].weight;
		result[q] = count ? list[at].seconds : NAN;
	}
}

/* @of_row selects ages or lifetimes in the element of a row. */
static void fill_rows(struct observations *all, struct mw_quantiles *quantiles, uint32_t rows,
		      double *(*of_row)(struct mw_quantiles *))
{
	size_t first = 0;

	qsort(all->list, all->count, sizeof(*all->list), compare_observations);
	for (size_t i = 1; i <= all->count; i++) {
		if (i < all->count && all->list[i].row == all->list[first].row)
			continue;
		quantiles_of(all->list + first, i - first,
			     of_row(&quantiles[all->list[first].row]));
		first = i;
	}
	qsort(all->list, all->count, sizeof(*all->list), compare_seconds);
	quantiles_of(all->list, all->count, of_row(&quantiles[rows]));
}

static double *ages_of(struct mw_quantiles *quantiles)
{
	return quantiles->age;
}

static double *lifetimes_of(struct mw_quantiles *quantiles)
{
	return quantiles->lifetime;
}

static void collect_ages(struct observations *all, const struct mw_heap_rows *rows,
			 const struct mw_prof_profile *profile)
{
	all->count = 0;
	for (uint32_t i = 0; i < profile->nr_samples; i++) {
		const struct mw_prof_sample *sample = &profile->samples[i];
		uint32_t row = mw_heap_rows_of(rows, sample->stack);
		double age;

		if (sample->birth_ns == MW_PROF_BIRTH_UNKNOWN || row == MW_ROW_NONE)
			continue;
		age = ((double)profile->info.end_ns - (double)sample->birth_ns) / 1e9;
		all->list[all->count++] = (struct observation){ row, age > 0 ? age : 0, 1 };
	}
}

static void collect_lifetimes(struct observations *all, const struct mw_heap_rows *rows,
			      const struct mw_prof_profile *profile)
{
	all->count = 0;
	for (uint32_t i = 0; i < profile->nr_lifetimes; i++) {
		const struct mw_prof_lifetime *lifetime = &profile->lifetimes[i];
		uint32_t row = mw_heap_rows_of(rows, lifetime->stack);

		if (row != MW_ROW_NONE)
			all->list[all->count++] = (struct observation){ row, lifetime->seconds,
									lifetime->samples };
	}
}

int mw_quantiles_new(const struct mw_heap_rows *rows, const struct mw_prof_profile *profile,
		     struct mw_quantiles **ret)
{
	size_t most = profile->nr_samples > profile->nr_lifetimes ? profile->nr_samples
								  : profile->nr_lifetimes;
	struct mw_quantiles *quantiles = reallocarray(NULL, rows->count + 1UL, sizeof(*quantiles));
	struct observations all = { .list = reallocarray(NULL, most + 1, sizeof(*all.list)) };

	if (!quantiles || !all.list) {
		free(quantiles);
		free(all.list);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i <= rows->count; i++)
		quantiles[i] = (struct mw_quantiles){ { NAN, NAN }, { NAN, NAN } };
	collect_ages(&all, rows, profile);
	fill_rows(&all, quantiles, rows->count, ages_of);
	collect_lifetimes(&all, rows, profile);
	fill_rows(&all, quantiles, rows->count, lifetimes_of);
	free(all.list);
	*ret = quantiles;
	return 0;
}
