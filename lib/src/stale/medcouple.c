// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The medcouple in O(n log n) time. The values of h form a matrix whose rows and columns are
 * sorted. How many of them are at most x is found in one walk along a border through the matrix.
 * The median is the smallest number for which this is at least half of them. It is found by
 * bisection over the floating-point numbers themselves: 64 walks, whatever the sample is.
 * Equal observations are one row or column with their number as its weight.
 *
 * h is computed from differences to the median that are exact for integers below 2^51. Then h
 * is monotonous, and the result is exactly that of sorting all pairs.
 */
#include "stale/medcouple.h"

#include <math.h>
#include <string.h>

/**
 * struct couples - the pairs of observations
 * @values: the sample
 * @twice: twice the median
 * @below: number of values below the median
 * @above: index of the first value above the median
 * @count: number of values
 * @lower, @middle, @upper: number of observations below, at and above the median
 */
struct couples {
	const struct mw_sample_value *values;
	double twice;
	size_t below, above, count;
	uint64_t lower, middle, upper;
};

typedef unsigned __int128 pairs_t;

/* h of two observations on different sides of the median. */
static double couple(const struct couples *c, size_t above, size_t below)
{
	double a = 2 * c->values[above].value - c->twice, b = 2 * c->values[below].value - c->twice;

	return (a + b) / (a - b);
}

/* The number of pairs with a value of at most @x, which is in [-1, 1]. */
static pairs_t pairs_at_most(const struct couples *c, double x)
{
	pairs_t ties = (pairs_t)c->middle * (c->middle - !!c->middle) / 2;
	pairs_t count = (pairs_t)c->lower * c->middle + ties;
	uint64_t columns = c->lower;
	size_t below = c->below;

	if (x >= 0)
		count += c->middle;
	if (x >= 1)
		count += (pairs_t)c->upper * c->middle + ties;
	for (size_t above = c->above; above < c->count; above++) {
		while (below && couple(c, above, below - 1) > x)
			columns -= c->values[--below].weight;
		count += (pairs_t)c->values[above].weight * columns;
	}
	return count;
}

/* Numbers in the order of floating-point numbers, without gaps. */
static int64_t order_of(double x)
{
	int64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits < 0 ? INT64_MIN - bits : bits;
}

static double number_of(int64_t order)
{
	int64_t bits = order < 0 ? INT64_MIN - order : order;
	double x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* The value that has @rank of all values before it. */
static double value_at(const struct couples *c, pairs_t rank)
{
	int64_t low = order_of(-1), high = order_of(1);

	while (low < high) {
		int64_t mid = low + (int64_t)(((uint64_t)high - (uint64_t)low) / 2);

		if (pairs_at_most(c, number_of(mid)) > rank)
			high = mid;
		else
			low = mid + 1;
	}
	return number_of(low);
}

static void split_sample(struct couples *c, const struct mw_sample *sample)
{
	c->values = sample->values;
	c->count = sample->count;
	c->twice = mw_sample_at(sample, (sample->total - 1) / 2) +
		   mw_sample_at(sample, sample->total / 2);
	while (c->below < c->count && 2 * c->values[c->below].value < c->twice)
		c->lower += c->values[c->below++].weight;
	c->above = c->below;
	while (c->above < c->count && 2 * c->values[c->above].value <= c->twice)
		c->middle += c->values[c->above++].weight;
	c->upper = sample->total - c->lower - c->middle;
}

double mw_medcouple(const struct mw_sample *sample)
{
	struct couples c = { 0 };
	pairs_t all;

	split_sample(&c, sample);
	all = (pairs_t)(c.lower + c.middle) * (c.upper + c.middle);
	return (value_at(&c, (all - 1) / 2) + value_at(&c, all / 2)) / 2;
}
