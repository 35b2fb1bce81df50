// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Prints random sets of observations and the library's figures for them, for a comparison with
 * an independent implementation. One line for each set: Q1, median, Q3, medcouple, fence, and
 * then the observations.
 *
 *	fences SETS SEED
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "stale/fence.h"

#include "prng.h"

static double uniform(struct prng *prng)
{
	return ((double)(prng_next(prng) >> 11) + 0.5) / 9007199254740992.0;
}

/* Lifetimes of objects have such distributions; the last two kinds have many ties. */
static double draw_value(struct prng *prng, uint64_t kind)
{
	double u = uniform(prng);

	switch (kind) {
	case 0:
		return -1e6 * log(u);
	case 1:
		return exp(8 * u + 4 * uniform(prng));
	case 2:
		return pow(u, -1.2);
	case 3:
		return -pow(u, -0.5);
	case 4:
		return floor(u * 6);
	default:
		return u < 0.6 ? 100 : floor(100 * uniform(prng));
	}
}

int main(int argc, char **argv)
{
	struct prng prng = { argc > 2 ? strtoull(argv[2], NULL, 10) : 1 };
	long sets = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
	struct mw_fence_rule rule = { .coefficient = 3 };

	for (long i = 0; i < sets; i++) {
		uint64_t kind = prng_below(&prng, 6),
			 n = MW_FENCE_LEAST + prng_below(&prng, i % 10 ? 200 : 3000);
		double *x = calloc(n, sizeof(*x));
		struct mw_sample sample = { 0 };
		struct mw_fence fence;

		for (uint64_t j = 0; j < n; j++) {
			x[j] = draw_value(&prng, kind);
			if (mw_sample_add(&sample, x[j], 1))
				return EXIT_FAILURE;
		}
		mw_sample_sort(&sample);
		fence = mw_fence_of(&sample, &rule);
		printf("%.17g %.17g %.17g %.17g %.17g", fence.q1, fence.median, fence.q3,
		       fence.medcouple, fence.threshold);
		for (uint64_t j = 0; j < n; j++)
			printf(" %.17g", x[j]);
		printf("\n");
		mw_sample_uninit(&sample);
		free(x);
	}
	return EXIT_SUCCESS;
}
