// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The estimates are unbiased, in bytes and in objects, for all sizes and for their mixture, and
 * their 95 % intervals hold the truth in 95 % of runs.
 *
 * Each run has a seed of its own, so this test gives the same result each time it runs. Its
 * bounds are those of chance: 4 standard errors for a mean.
 */
#include "heap/tests/kit.h"

#define RUNS_DEFAULT 60
#define SIGMAS	     4

/* Errors of many runs, each divided by its standard deviation as the profile estimates it. */
struct errors {
	unsigned int runs, covered;
	double bytes, objects, allocated; /* sums of relative errors */
	double bytes_square, objects_square, allocated_square;
};

static void error_add(double *sum, double *square, double got, double truth)
{
	double error = got / truth - 1;

	*sum += error;
	*square += error * error;
}

static bool run_once(const char *size, unsigned int seed, const char *rate, struct errors *errors)
{
	uint64_t truth[4];
	struct profile profile;
	struct profile_live live;
	char settings[128];
	struct kit_run run;

	kit_empty();
	snprintf(settings, sizeof(settings), "MEMWATCH_HEAP_RATE=%s MEMWATCH_HEAP_SEED=%u", rate,
		 seed);
	kit_run(&run, NULL, settings, KIT_ARGV(kit.work, "mix", size));
	if (sscanf(run.text, "%lu %lu %lu %lu", &truth[0], &truth[1], &truth[2], &truth[3]) != 4 ||
	    !kit_open(&profile, run.pid))
		return false;
	live = profile_live(&profile);
	error_add(&errors->bytes, &errors->bytes_square, live.bytes, (double)truth[0]);
	error_add(&errors->objects, &errors->objects_square, live.objects, (double)truth[1]);
	error_add(&errors->allocated, &errors->allocated_square,
		  (double)profile.header->counters.allocated_bytes, (double)truth[2]);
	errors->covered += fabs(live.bytes - (double)truth[0]) <= 1.96 * sqrt(live.bytes_variance);
	errors->runs++;
	profile_close(&profile);
	kit_free(&run);
	return true;
}

static void check_mean(const char *what, const char *size, double sum, double square,
		       unsigned int runs)
{
	double mean = sum / runs;
	double error = sqrt((square / runs - mean * mean) / (runs - 1));

	tap_ok(fabs(mean) <= SIGMAS * error + 1e-6,
	       "size %s: the estimate of %s is unbiased (%+.2f %%, standard error %.2f %%)", size,
	       what, 100 * mean, 100 * error);
}

static void check_size(const char *size, const char *rate, unsigned int runs)
{
	const char *title = strcmp(size, "0") ? size : "mixed";
	struct errors errors = { 0 };

	for (unsigned int seed = 1; seed <= runs; seed++)
		if (!run_once(size, 1000 * seed, rate, &errors))
			break;
	tap_eq(errors.runs, runs, "size %s: all runs leave a profile", title);
	if (errors.runs != runs)
		return;
	check_mean("live bytes", title, errors.bytes, errors.bytes_square, runs);
	check_mean("live objects", title, errors.objects, errors.objects_square, runs);
	check_mean("allocated bytes", title, errors.allocated, errors.allocated_square, runs);
	/* Large objects are always sampled: then there is no error, and every interval holds. */
	tap_ok(errors.covered + SIGMAS * sqrt(0.95 * 0.05 * runs) >= 0.95 * runs,
	       "size %s: %u of %u intervals hold the truth", title, errors.covered, runs);
}

int main(int argc, char **argv)
{
	unsigned int runs = argc > 1 ? (unsigned int)atoi(argv[1]) : RUNS_DEFAULT;

	kit_init(argv[0]);
	tap_start();
	check_size("0", "64K", runs);
	check_size("1", "4K", runs);
	check_size("8", "64K", runs);
	check_size("1000", "64K", runs);
	check_size("100000", "64K", runs);
	check_size("1000000", "512K", runs);
	check_size("100000000", "512K", runs / 4);
	check_size("1000000000", "512K", runs / 4);
	return tap_done();
}
