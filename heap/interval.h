/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The random side of sampling: a generator, exponential intervals, and the probability with
 * which an allocation of a given size is sampled. It needs no libm, because the library is
 * loaded into programs that may not have one.
 */
#ifndef _MW_HEAP_INTERVAL_H
#define _MW_HEAP_INTERVAL_H

#include <stdint.h>

/* xoshiro256++ by Blackman and Vigna; its state must not be all zeros. */
struct mw_random {
	uint64_t s[4];
};

void mw_random_seed(struct mw_random *random, uint64_t seed);
uint64_t mw_random_next(struct mw_random *random);

/* A number in (0, 1]. */
double mw_random_unit(struct mw_random *random);

/*
 * Bytes until the next sample: an exponential with mean @rate, rounded down, so that an
 * allocation of s bytes contains the sample with probability 1 - exp(-s / rate) exactly. A
 * rate of 1 samples everything.
 */
uint64_t mw_interval_draw(struct mw_random *random, uint64_t rate);

/* The probability with which an allocation of @size bytes is sampled at @rate. */
double mw_interval_probability(uint64_t size, uint64_t rate);

/* Natural logarithm for 0 < x <= 1, and 1 - exp(-x) for x >= 0; errors below 1e-15 of the result.
 */
double mw_log(double x);
double mw_one_minus_exp(double x);

#endif
