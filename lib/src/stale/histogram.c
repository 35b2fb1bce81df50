// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Histograms of durations.
 */
#include "stale/histogram.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define PART_BITS 5U
#define PARTS	  (1U << PART_BITS)

static uint32_t bucket_of(uint64_t duration)
{
	uint32_t shift;

	if (duration < 2 * PARTS)
		return (uint32_t)duration;
	shift = 63 - (uint32_t)__builtin_clzll(duration) - PART_BITS;
	return shift * PARTS + (uint32_t)(duration >> shift);
}

static double middle_of(uint32_t number)
{
	uint32_t shift;
	double low;

	if (number < 2 * PARTS)
		return number;
	shift = number / PARTS - 1;
	low = (double)((uint64_t)(number - shift * PARTS) << shift);
	return low + (double)((1ULL << shift) - 1) / 2;
}

/* Where bucket @number is, or belongs. */
static uint32_t place_of(const struct mw_histogram *histogram, uint32_t number)
{
	uint32_t low = 0, high = histogram->count;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (histogram->buckets[mid].number < number)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

int mw_histogram_add(struct mw_histogram *histogram, uint64_t duration)
{
	uint32_t number = bucket_of(duration), place = place_of(histogram, number);
	struct mw_histogram_bucket *at;

	if (place == histogram->count || histogram->buckets[place].number != number) {
		if (mw_array_reserve(histogram->buckets, histogram->capacity,
				     histogram->count + 1U))
			return -ENOMEM;
		at = histogram->buckets + place;
		memmove(at + 1, at, (histogram->count - place) * sizeof(*at));
		*at = (struct mw_histogram_bucket){ .number = number };
		histogram->count++;
	}
	histogram->buckets[place].count++;
	return 0;
}

int mw_histogram_export(const struct mw_histogram *histogram, struct mw_sample *sample)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < histogram->count; i++)
		err = mw_sample_add(sample, middle_of((uint32_t)histogram->buckets[i].number),
				    histogram->buckets[i].count);
	return err;
}

void mw_histogram_uninit(struct mw_histogram *histogram)
{
	free(histogram->buckets);
	*histogram = (struct mw_histogram){ 0 };
}
