/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Random intervals and sampling probabilities.
 */
#include <string.h>

#include "interval.h"

#define LN2_HIGH 0x1.62e42fefap-1 /* the upper 36 bits of ln 2, so that n * LN2_HIGH is exact */
#define LN2_LOW	 0x1.cf79abc9e3b3ap-40
#define SQRT2	 1.41421356237309504880

/* Longest interval. It is far from the largest 64-bit number, so that sums do not overflow. */
#define INTERVAL_MAX (UINT64_C(1) << 60)

static uint64_t rotate_left(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

/* splitmix64: any two seeds give unrelated states. */
void mw_random_seed(struct mw_random *random, uint64_t seed)
{
	for (int i = 0; i < 4; i++) {
		uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);

		z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
		random->s[i] = z ^ z >> 31;
	}
}

uint64_t mw_random_next(struct mw_random *random)
{
	uint64_t *s = random->s;
	uint64_t result = rotate_left(s[0] + s[3], 23) + s[0];
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

double mw_random_unit(struct mw_random *random)
{
	return ((double)(mw_random_next(random) >> 11) + 1) * 0x1p-53;
}

double mw_log(double x)
{
	uint64_t bits;
	int exponent;
	double m, s, square, sum = 0;

	/* x = m * 2^exponent with m in [sqrt(1/2), sqrt(2)). */
	memcpy(&bits, &x, sizeof(bits));
	exponent = (int)(bits >> 52) - 1023;
	bits = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52;
	memcpy(&m, &bits, sizeof(m));
	if (m > SQRT2) {
		m /= 2;
		exponent++;
	}
	/* ln m = 2 artanh((m - 1) / (m + 1)) */
	s = (m - 1) / (m + 1);
	square = s * s;
	for (int k = 21; k >= 3; k -= 2)
		sum = (sum + 1.0 / k) * square;
	return exponent * LN2_HIGH + (2 * s * (1 + sum) + exponent * LN2_LOW);
}

double mw_one_minus_exp(double x)
{
	double n, r, sum = 0, scale = 1;

	if (!(x < 40))
		return 1;
	/* x = n ln 2 + r with |r| <= ln 2 / 2. */
	n = (double)(int)(x / (LN2_HIGH + LN2_LOW) + 0.5);
	r = x - n * LN2_HIGH - n * LN2_LOW;
	/* 1 - exp(-r) = r - r^2/2! + r^3/3! - ... */
	for (int k = 16; k >= 2; k--)
		sum = (1 - sum) * r / k;
	sum = r * (1 - sum);
	for (int k = 0; k < (int)n; k++)
		scale /= 2;
	return 1 - scale + scale * sum;
}

uint64_t mw_interval_draw(struct mw_random *random, uint64_t rate)
{
	double bytes;

	if (rate <= 1)
		return 0;
	bytes = -mw_log(mw_random_unit(random)) * (double)rate;
	return bytes < (double)INTERVAL_MAX ? (uint64_t)bytes : INTERVAL_MAX;
}

double mw_interval_probability(uint64_t size, uint64_t rate)
{
	if (rate <= 1)
		return 1;
	return mw_one_minus_exp((double)(size ? size : 1) / (double)rate);
}
