// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The arithmetic of the growth detectors against 128-bit integers of the compiler, and
 * the regression against a textbook implementation in floating point.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "bpf/growth-maps.h"

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"

static struct prng prng = { 1 };

/* A random number of random length: 1 to 64 bits, less @shift. */
static uint64_t random_bits(unsigned int shift)
{
	return prng_next(&prng) >> (shift + prng_below(&prng, 64 - shift));
}

static void test_sizes(void)
{
	size_t state = sizeof(struct mw_growth_process);
	size_t both = state + sizeof(struct mw_growth_history);

	tap_ok(state <= 256, "the state of a process has %zu bytes, at most 256", state);
	tap_ok(both <= 3072, "state and history of a process have %zu bytes, at most 3072", both);
}

static void test_multiply(void)
{
	unsigned int bad = 0;

	for (int i = 0; i < 500000; i++) {
		uint64_t a = random_bits(0), b = random_bits(0);
		unsigned __int128 want = (unsigned __int128)a * b;
		struct mw_growth_wide product = mw_growth_multiply(a, b);

		bad += product.high != (uint64_t)(want >> 64) || product.low != (uint64_t)want;
	}
	tap_eq(bad, 0, "128-bit products are those of the compiler");
}

static void test_ppm(void)
{
	unsigned int bad = 0;

	for (int i = 0; i < 200000; i++) {
		/* Below 2^100, so that the product with a million fits the reference. */
		uint64_t a = prng_next(&prng) >> (14 + prng_below(&prng, 40));
		uint64_t b = prng_next(&prng) >> (14 + prng_below(&prng, 40));
		struct mw_growth_wide whole = mw_growth_multiply(a | 1, b | 1);
		unsigned __int128 w = ((unsigned __int128)whole.high << 64) | whole.low;
		unsigned __int128 p = w / 1000003 * prng_below(&prng, 1000004);
		struct mw_growth_wide part = { (uint64_t)(p >> 64), (uint64_t)p };

		bad += mw_growth_ppm(&part, &whole) != (uint32_t)(p * 1000000 / w);
	}
	tap_eq(bad, 0, "ratios in parts per million are exact");
}

static struct mw_growth_history history;

/* Makes @values the bins of level 1, the newest last. */
static void set_bins(const uint32_t *values, unsigned int nr)
{
	memset(&history, 0, sizeof(history));
	history.level[1].bin = nr + 1;
	history.level[1].ring[0] = MW_GROWTH_MISSING;
	for (unsigned int i = 0; i < nr; i++)
		history.level[1].ring[(i + 1) % MW_GROWTH_BINS] = values[i];
}

/* R squared, and the slope in pages per bin, of the envelope, by the textbook formulas. */
static void fit_textbook(const uint32_t *values, unsigned int nr, double *slope, double *r2)
{
	double x = 0, y = 0, xx = 0, xy = 0, yy = 0, n = 0;
	uint32_t low = UINT32_MAX;

	for (unsigned int i = nr; i-- > 0;) {
		double dx, dy;

		if (values[i] == MW_GROWTH_MISSING)
			continue;
		low = values[i] < low ? values[i] : low;
		dx = i;
		dy = low;
		n++;
		x += dx;
		y += dy;
		xx += dx * dx;
		xy += dx * dy;
		yy += dy * dy;
	}
	*slope = (n * xy - x * y) / (n * xx - x * x);
	*r2 = (n * xy - x * y) * (n * xy - x * y) / ((n * xx - x * x) * (n * yy - y * y));
}

static void test_line(void)
{
	const struct mw_growth_trend *trend = &history.attempt;
	uint32_t values[32];

	for (unsigned int i = 0; i < 32; i++)
		values[i] = 1000 + 200 * i; /* 200 pages in 80 s are 10240 bytes per second */
	set_bins(values, 32);
	tap_eq(mw_growth_fit_window(&history, 1, 19), 1, "a straight line can be fitted");
	tap_eq(trend->slope_bps, 10240, "a straight line has its slope");
	tap_eq(trend->r2_permille, 1000, "a straight line has an R squared of 1");
	tap_eq(trend->score, 100, "a straight line has a score of 100");
	tap_eq(trend->growth, 18 * 200, "a straight line has the growth of its window");
}

/* With too few samples there is no trend, and nothing stays of the one before. */
static void test_no_samples(void)
{
	const struct mw_growth_trend *trend = &history.trend[1];
	uint32_t values[32];

	for (unsigned int i = 0; i < 32; i++)
		values[i] = 1000 + 200 * i;
	set_bins(values, 32);
	mw_growth_fit_level(&history, 1);
	tap_eq(trend->slope_bps, 10240, "a level has the trend of its bins");
	history.level[1].ring[history.level[1].bin++ % MW_GROWTH_BINS] = MW_GROWTH_MISSING;
	mw_growth_fit_level(&history, 1);
	tap_eq(trend->window, 0, "a level without a sample in its newest bin has no trend");
	tap_eq(trend->r2_permille, 0, "R squared of an earlier trend does not stay");
	tap_eq(trend->slope_bps, 0, "the slope of an earlier trend does not stay");
}

static void test_no_line(void)
{
	const struct mw_growth_trend *trend = &history.attempt;
	uint32_t values[32];

	for (unsigned int i = 0; i < 32; i++)
		values[i] = 1000;
	set_bins(values, 32);
	tap_eq(mw_growth_fit_window(&history, 1, 19), 1, "a flat series can be fitted");
	tap_eq(trend->slope_bps, 0, "a flat series has no slope");
	tap_eq(trend->score, 0, "a flat series has no score");
	tap_eq(trend->r2_permille, 0, "a flat series has no R squared");
	for (unsigned int i = 0; i < 32; i++)
		values[i] = 1000 + (i > 20 ? 5000 : 0);
	set_bins(values, 32);
	mw_growth_fit_window(&history, 1, 32);
	tap_eq(trend->score, 0, "a single step has no score");
}

static void test_textbook(void)
{
	unsigned int bad = 0, tried = 0;

	for (int round = 0; round < 20000; round++) {
		uint32_t values[32], scale = 1U << prng_below(&prng, 24);
		double slope, r2;

		for (unsigned int i = 0; i < 32; i++) {
			values[i] = (uint32_t)(prng_below(&prng, scale) +
					       i * prng_below(&prng, scale / 8 + 1));
			if (!prng_below(&prng, 10) && i != 31)
				values[i] = MW_GROWTH_MISSING;
		}
		set_bins(values, 32);
		if (!mw_growth_fit_window(&history, 1, 32) || !history.attempt.growth)
			continue;
		fit_textbook(values, 32, &slope, &r2);
		tried++;
		if (fabs((double)history.attempt.slope_bps - floor(slope * 4096 / 80)) > 1.01 ||
		    fabs(history.attempt.r2_permille - r2 * 1000) > 1.01)
			bad++;
	}
	tap_eq(bad, 0, "lines through random windows agree with the textbook");
	tap_ok(tried > 10000, "more than 10000 random windows were fitted: %u", tried);
}

int main(void)
{
	tap_start();
	test_sizes();
	test_multiply();
	test_ppm();
	test_line();
	test_no_samples();
	test_no_line();
	test_textbook();
	return tap_done();
}
