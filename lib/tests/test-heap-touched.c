// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How much was touched, from watches that are chosen at random among samples of which all is known.
 */
#include <math.h>
#include <stdlib.h>

#include "../../selftests/tap.h"
#include "heap/touched.h"

#define RUNS	1000
#define SAMPLES 3000
#define SECOND	1000000000LL
#define NOW	(1000000 * SECOND)

static struct mw_prof_sample samples[SAMPLES];
static struct mw_prof_watch watches[SAMPLES];
static int64_t touched_ns[SAMPLES];
static uint32_t stack_of[1], stack_row[1];
static uint64_t state = 1;

/* In [0, 1), the same in each run of the test. */
static double unit(void)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(state >> 11) / 9007199254740992.0;
}

/*
 * A tenth was allocated in the last minute; of the rest, @share was touched in it, and half of
 * that among the first half of the samples, whose watches have another weight. Returns the bytes
 * that were touched.
 */
static double objects_make(double share)
{
	double touched = 0;

	for (int i = 0; i < SAMPLES; i++) {
		double odds = i < SAMPLES / 2 ? share / 2 : share;
		bool is_young = i % 10 == 0, is_touched = is_young || unit() < odds;
		double bytes = 100 + floor(900 * unit());

		samples[i] = (struct mw_prof_sample){ .count = 1, .size = (uint64_t)bytes };
		samples[i].sum[MEMWATCH_HEAP_LIVE_BYTES].value = bytes;
		samples[i].birth_ns = NOW - (is_young ? 10 : 5000) * SECOND;
		touched_ns[i] = NOW - (is_touched ? 10 : 4000) * SECOND;
		touched += is_touched ? bytes : 0;
	}
	return touched;
}

/* Chooses one sample in 32; those in the first half with twice these odds and half the weight. */
static uint32_t watches_choose(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < SAMPLES; i++) {
		double weight = i < SAMPLES / 2 ? 16 : 32;

		if (unit() * weight < 1)
			watches[count++] = (struct mw_prof_watch){ .sample = i,
								   .weight = weight,
								   .touched_ns = touched_ns[i] };
	}
	return count;
}

static struct memwatch_heap_estimate estimate(uint32_t count, uint64_t least, int window)
{
	struct mw_heap_rows rows = { .frames.stack_of = stack_of, .stack_row = stack_row };
	struct mw_prof_profile profile = {
		.samples = samples, .nr_samples = SAMPLES, .watches = watches, .nr_watches = count
	};
	struct memwatch_heap_estimate result;
	struct mw_touched *touched;

	rows.count = 1;
	profile.info.watch_ns = NOW;
	profile.info.watch_step_ns = 10 * SECOND;
	profile.info.watch_least = least;
	if (mw_touched_new(&rows, &profile, &touched))
		exit(EXIT_FAILURE);
	result = touched[0].window[window];
	free(touched);
	return result;
}

/* The bounds are four standard deviations of the mean and of a binomial count. */
static void check_share(double share)
{
	double sum = 0, squares = 0, deviation, truth;
	int covered = 0;

	truth = objects_make(share);
	for (int run = 0; run < RUNS; run++) {
		struct memwatch_heap_estimate e = estimate(watches_choose(), 0,
							   MEMWATCH_HEAP_MINUTE);

		sum += e.value - truth;
		squares += (e.value - truth) * (e.value - truth);
		covered += e.low <= truth && truth <= e.high;
	}
	deviation = sqrt(squares / RUNS);
	tap_ok(fabs(sum / RUNS) < 4 * deviation / sqrt(RUNS),
	       "%.2f touched: the estimate is right on average (%+.0f of %.0f, scattering by %.0f)",
	       share, sum / RUNS, truth, deviation);
	tap_ok(fabs(covered - 0.95 * RUNS) < 4 * sqrt(RUNS * 0.95 * 0.05),
	       "%.2f touched: the interval has the truth in 95 %% of cases (%d of %d)", share,
	       covered, RUNS);
}

int main(void)
{
	struct memwatch_heap_estimate e;

	tap_start();
	check_share(0.1);
	check_share(0.5);
	check_share(0.8);
	e = estimate(watches_choose(), 0, MEMWATCH_HEAP_DAY);
	tap_ok(e.low < e.high + 1 && fabs(e.high - e.low) < 1,
	       "what was allocated in a window needs no watch");
	tap_ok(isnan(estimate(0, 0, MEMWATCH_HEAP_MINUTE).value),
	       "without watches nothing is known");
	tap_ok(isnan(estimate(watches_choose(), 500, MEMWATCH_HEAP_MINUTE).value),
	       "if small ones are never watched, neither");
	return tap_done();
}
