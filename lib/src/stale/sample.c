// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Samples with weights.
 */
#include "stale/sample.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"

int mw_sample_add(struct mw_sample *sample, double value, uint64_t weight)
{
	if (!weight)
		return 0;
	if (mw_array_reserve(sample->values, sample->capacity, sample->count + 1))
		return -ENOMEM;
	sample->values[sample->count++] = (struct mw_sample_value){ value, weight };
	sample->total += weight;
	return 0;
}

static int compare_values(const void *a, const void *b)
{
	const struct mw_sample_value *x = a, *y = b;

	return x->value < y->value ? -1 : x->value > y->value;
}

void mw_sample_sort(struct mw_sample *sample)
{
	size_t last = 0;

	if (!sample->count)
		return;
	qsort(sample->values, sample->count, sizeof(*sample->values), compare_values);
	for (size_t i = 1; i < sample->count; i++) {
		if (sample->values[i].value == sample->values[last].value)
			sample->values[last].weight += sample->values[i].weight;
		else
			sample->values[++last] = sample->values[i];
	}
	sample->count = last + 1;
}

void mw_sample_clear(struct mw_sample *sample)
{
	sample->count = 0;
	sample->total = 0;
}

void mw_sample_uninit(struct mw_sample *sample)
{
	free(sample->values);
	*sample = (struct mw_sample){ 0 };
}

double mw_sample_at(const struct mw_sample *sample, uint64_t rank)
{
	uint64_t before = 0;
	size_t i = 0;

	while (i + 1 < sample->count && before + sample->values[i].weight <= rank)
		before += sample->values[i++].weight;
	return sample->values[i].value;
}

double mw_sample_quantile(const struct mw_sample *sample, double p)
{
	double position = p * (double)(sample->total - 1), whole = floor(position);
	double low = mw_sample_at(sample, (uint64_t)whole);
	double high = mw_sample_at(sample, (uint64_t)whole + 1);

	return low + (position - whole) * (high - low);
}
