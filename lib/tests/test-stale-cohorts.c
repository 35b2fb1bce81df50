// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Allocations by time, against a recount of all of them.
 */
#include <string.h>

#include "stale/cohorts.h"

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"

#define SEED  20261127
#define COUNT 5000

static uint64_t births[COUNT];

static int is_counted(const struct mw_cohorts *cohorts, int count)
{
	uint64_t expected[MW_COHORTS] = { 0 };

	for (int i = 0; i < count; i++) {
		uint32_t cohort = mw_cohorts_of(cohorts, births[i]);

		if (cohort >= MW_COHORTS)
			return 0;
		expected[cohort]++;
	}
	return !memcmp(expected, cohorts->allocated, sizeof(expected));
}

static void test_recount(void)
{
	struct mw_cohorts cohorts = { 0 };
	struct prng prng = { SEED };
	uint64_t now = 0;
	int wrong = 0;

	for (int i = 0; i < COUNT; i++) {
		now += prng_below(&prng, 10) ? prng_below(&prng, 1000) : prng_below(&prng, 1000000);
		births[i] = now;
		mw_cohorts_add(&cohorts, now);
		wrong += !is_counted(&cohorts, i + 1);
	}
	tap_eq(wrong, 0, "all allocations are counted in their cohorts, at any time");
	tap_ok(mw_cohorts_of(&cohorts, now) >= MW_COHORTS / 2,
	       "more than half of the cohorts are in use");
}

static void test_limits(void)
{
	struct mw_cohorts cohorts = { 0 };

	for (births[0] = 0; births[0] < 3; births[0]++)
		mw_cohorts_add(&cohorts, 0);
	tap_eq(cohorts.allocated[0], 3, "a time that does not pass is one cohort");
	mw_cohorts_add(&cohorts, UINT64_MAX);
	tap_ok(cohorts.allocated[0] == 3 && cohorts.allocated[MW_COHORTS - 1] == 1,
	       "the longest time has its cohorts");
}

int main(void)
{
	tap_plan(4);
	test_recount();
	test_limits();
	return tap_done();
}
