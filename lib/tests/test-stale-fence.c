// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The medcouple and the fence: the fast algorithm against the definition, weights against
 * repeated observations, ties, and fences that were computed by hand.
 */
#include <math.h>
#include <stdlib.h>

#include "stale/fence.h"
#include "stale/medcouple.h"

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"

#define SEED 20261123
#define SETS 2000

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The definition: all pairs. @x is sorted. */
static double medcouple_of_pairs(const double *x, size_t n)
{
	double median = (x[(n - 1) / 2] + x[n / 2]) / 2, *h = malloc(n * n * sizeof(*h)), result;
	size_t first = 0, last = n, pairs = 0;

	while (first < n && x[first] < median)
		first++;
	while (last && x[last - 1] > median)
		last--;
	for (size_t i = first; i < n; i++) {
		for (size_t j = 0; j < last; j++) {
			long tie = (long)(last - first) - 1 - (long)(i - first) - (long)(j - first);

			if (x[i] > median || x[j] < median)
				h[pairs++] = (x[i] - median - (median - x[j])) / (x[i] - x[j]);
			else
				h[pairs++] = (tie > 0) - (tie < 0);
		}
	}
	qsort(h, pairs, sizeof(*h), compare_doubles);
	result = (h[(pairs - 1) / 2] + h[pairs / 2]) / 2;
	free(h);
	return result;
}

/* Sets of all kinds: spread or with many ties, small or with outliers. */
static size_t draw_set(struct prng *prng, double *x)
{
	size_t n = 1 + prng_below(prng, 70);
	uint64_t kind = prng_below(prng, 4), range = kind == 0 ? 1 + prng_below(prng, 5) : 1000000;

	for (size_t i = 0; i < n; i++) {
		x[i] = (double)prng_below(prng, range);
		if (kind == 2)
			x[i] = x[i] * x[i];
		else if (kind == 3 && !prng_below(prng, 8))
			x[i] += 1e9;
	}
	return n;
}

static void test_against_pairs(void)
{
	struct prng prng = { SEED };
	int wrong = 0, wrong_weights = 0, wrong_quantiles = 0;
	double x[70];

	tap_note("seed %d", SEED);
	for (int set = 0; set < SETS; set++) {
		struct mw_sample single = { 0 }, weighted = { 0 };
		size_t n = draw_set(&prng, x), run;
		double expected, got;

		for (size_t i = 0; i < n; i++)
			mw_sample_add(&single, x[i], 1);
		qsort(x, n, sizeof(*x), compare_doubles);
		for (size_t i = 0; i < n; i += run) {
			for (run = 1; i + run < n && x[i + run] == x[i]; run++)
				;
			mw_sample_add(&weighted, x[i], run);
		}
		mw_sample_sort(&single);
		mw_sample_sort(&weighted);
		expected = medcouple_of_pairs(x, n);
		got = mw_medcouple(&single);
		if (got != expected && !wrong++)
			tap_note("set %d of %zu: %.17g, expected %.17g", set, n, got, expected);
		wrong_weights += mw_medcouple(&weighted) != expected;
		wrong_quantiles += mw_sample_quantile(&single, 0.5) !=
				   (x[(n - 1) / 2] + x[n / 2]) / 2;
		mw_sample_uninit(&single);
		mw_sample_uninit(&weighted);
	}
	tap_eq(wrong, 0, "the medcouple of %d random sets is exactly that of all pairs", SETS);
	tap_eq(wrong_weights, 0, "a weight counts as that many equal observations");
	tap_eq(wrong_quantiles, 0, "the quantile 0.5 is the median");
}

static void test_large(void)
{
	struct mw_sample sample = { 0 };
	double mc;

	/* 10^12 observations: 2 of 3 are 0, 1 of 3 is spread evenly. */
	mw_sample_add(&sample, 0, 666666666666);
	for (int i = 1; i <= 1000; i++)
		mw_sample_add(&sample, i, 333333333);
	mw_sample_sort(&sample);
	mc = mw_medcouple(&sample);
	tap_ok(mc == 1, "the medcouple of 10^12 observations of which most are 0 is 1");
	mw_sample_uninit(&sample);
}

static void test_fence(void)
{
	struct mw_fence_rule rule = { .coefficient = 3 }, wide = { .coefficient = 3, .spread = 8 },
			     share = { .coefficient = 2, .spread_share = 0.5 };
	struct mw_sample sample = { 0 }, same = { 0 };
	struct mw_fence fence;

	for (int i = 1; i <= 9; i++)
		mw_sample_add(&sample, i, 1);
	mw_sample_sort(&sample);
	fence = mw_fence_of(&sample, &rule);
	tap_ok(fence.q1 == 3 && fence.median == 5 && fence.q3 == 7,
	       "the quartiles of 1 to 9 are 3, 5 and 7");
	tap_ok(fence.medcouple == 0, "a symmetric sample has no skew");
	tap_ok(fence.threshold == 7 + 3 * 4, "without skew, the fence is that of the boxplot");
	fence = mw_fence_of(&sample, &wide);
	tap_ok(fence.threshold == 7 + 3 * 8 && fence.flat,
	       "a spread below its limit is replaced by it");
	mw_sample_add(&same, 100, 50);
	mw_sample_sort(&same);
	fence = mw_fence_of(&same, &share);
	tap_ok(fence.threshold == 200 && fence.flat,
	       "the fence of equal observations is their share above them");
	mw_sample_uninit(&sample);
	mw_sample_uninit(&same);
}

static void test_skew(void)
{
	struct mw_fence_rule rule = { .coefficient = 1.5 };
	struct mw_sample right = { 0 }, left = { 0 };
	struct mw_fence fence;
	double mc;

	for (int i = 0; i < 40; i++) {
		mw_sample_add(&right, i * i, 1);
		mw_sample_add(&left, -i * i, 1);
	}
	mw_sample_sort(&right);
	mw_sample_sort(&left);
	mc = mw_medcouple(&right);
	tap_ok(mc > 0 && mw_medcouple(&left) == -mc,
	       "the medcouple of a mirrored sample is mirrored");
	fence = mw_fence_of(&left, &rule);
	tap_ok(fence.threshold == fence.q3 + 1.5 * exp(-4 * mc) * (fence.q3 - fence.q1),
	       "a skew to the left narrows the fence by exp(4 MC)");
	mw_sample_uninit(&right);
	mw_sample_uninit(&left);
}

int main(void)
{
	tap_plan(11);
	test_against_pairs();
	test_large();
	test_fence();
	test_skew();
	return tap_done();
}
