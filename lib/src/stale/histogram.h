/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How often which duration was seen. Durations below 64 are exact; others are told apart by 1/32
 * of a power of two. Its memory depends on how different the durations are, not on their number.
 */
#ifndef MW_STALE_HISTOGRAM_H
#define MW_STALE_HISTOGRAM_H

#include "stale/sample.h"

struct mw_histogram_bucket {
	uint64_t number : 12;
	uint64_t count : 52;
};

/* Buckets that are not empty, by number; zero is an empty histogram. */
struct mw_histogram {
	struct mw_histogram_bucket *buckets;
	uint32_t count, capacity;
};

/* Returns 0 or -ENOMEM. */
int mw_histogram_add(struct mw_histogram *histogram, uint64_t duration);

/* Adds the middle of each bucket to @sample, with its count. Returns 0 or -ENOMEM. */
int mw_histogram_export(const struct mw_histogram *histogram, struct mw_sample *sample);

void mw_histogram_uninit(struct mw_histogram *histogram);

#endif /* MW_STALE_HISTOGRAM_H */
