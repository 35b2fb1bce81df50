/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A sample of a distribution: values with weights. A value of weight 3 stands for three equal
 * observations, so that counts of a histogram and single observations can be in one sample.
 */
#ifndef MW_STALE_SAMPLE_H
#define MW_STALE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

struct mw_sample_value {
	double value;
	uint64_t weight;
};

/**
 * struct mw_sample - the sample; zero is an empty one
 * @values: owned
 * @count: number of values
 * @capacity: of @values
 * @total: sum of the weights
 */
struct mw_sample {
	struct mw_sample_value *values;
	size_t count, capacity;
	uint64_t total;
};

/* Adds an observation, which is a finite number. Returns 0 or -ENOMEM. */
int mw_sample_add(struct mw_sample *sample, double value, uint64_t weight);

/* Sorts the values and joins equal ones. What follows here needs a sorted sample. */
void mw_sample_sort(struct mw_sample *sample);

/* Removes the values and keeps the memory. */
void mw_sample_clear(struct mw_sample *sample);
void mw_sample_uninit(struct mw_sample *sample);

/*
 * The quantile @p of a sample that is not empty, interpolated between the observations around it
 * (type 7 of Hyndman and Fan, the default of R and NumPy).
 */
double mw_sample_quantile(const struct mw_sample *sample, double p);

/* The smallest observation that has more than @rank observations at or before it. */
double mw_sample_at(const struct mw_sample *sample, uint64_t rank);

#endif /* MW_STALE_SAMPLE_H */
