// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * When the sums of cgroups are believed, and when they are not: numbers that are right, that are
 * wrong once, and that are wrong always.
 */
#include "growth/sums.h"

#include "../../selftests/tap.h"

/* A visit of two cgroups. */
static bool visit(struct mw_sums *sums, uint64_t lru, uint64_t pages)
{
	mw_sums_begin(sums);
	mw_sums_add(sums, lru / 3, pages - pages / 5);
	mw_sums_add(sums, lru - lru / 3, pages / 5);
	return mw_sums_compare(sums);
}

static void test_right(void)
{
	struct mw_sums sums = { 0 };

	tap_ok(!visit(&sums, 100000, 95000) && sums.compared && !sums.failures,
	       "sums near the LRU lists are believed");
	tap_ok(!visit(&sums, 100000, 0) && !sums.failures, "they are compared only once");
}

static void test_bounds(void)
{
	struct mw_sums sums = { 0 };

	tap_ok(!visit(&sums, 10000, 5000) && sums.failures, "half of the LRU lists is too little");
	tap_ok(!visit(&sums, 10000, 20000) && sums.failures == 2, "twice as much is too much");
	tap_ok(!visit(&sums, 10000, 5001) && !sums.failures, "more than half is enough");
}

static void test_small(void)
{
	struct mw_sums sums = { 0 };
	bool wrong = false;

	for (int i = 0; i < 2 * MW_SUMS_FAILURES; i++)
		wrong |= visit(&sums, MW_SUMS_PAGES - 1, 0);
	tap_ok(!wrong && !sums.failures && !sums.compared,
	       "with less memory than that, nothing is concluded");
	tap_ok(!visit(&sums, MW_SUMS_PAGES, MW_SUMS_PAGES) && sums.compared,
	       "it is concluded as soon as there is enough");
}

static void test_one_failure(void)
{
	struct mw_sums sums = { 0 };

	tap_ok(!visit(&sums, 100000, 0) && sums.failures == 1 && !sums.compared,
	       "one failure concludes nothing, but what was read is not to be used");
	tap_ok(!visit(&sums, 100000, 100000) && sums.compared && !sums.failures,
	       "the sums are believed when the next comparison succeeds");
}

static void test_interrupted(void)
{
	struct mw_sums sums = { 0 };
	bool wrong = false;

	for (int i = 0; i < MW_SUMS_FAILURES - 1; i++)
		wrong |= visit(&sums, 100000, 0);
	wrong |= visit(&sums, 100, 0);
	for (int i = 0; i < MW_SUMS_FAILURES - 1; i++)
		wrong |= visit(&sums, 100000, 0);
	tap_ok(!wrong && sums.failures == MW_SUMS_FAILURES - 1,
	       "only failures in a row are counted");
}

static void test_wrong(void)
{
	struct mw_sums sums = { 0 };
	int told = 0, first = 0;

	for (int i = 1; i <= 3 * MW_SUMS_FAILURES; i++) {
		if (!visit(&sums, 100000, 0))
			continue;
		told++;
		first = first ? first : i;
	}
	tap_eq(first, MW_SUMS_FAILURES, "sums that are always wrong are told after five visits");
	tap_eq(told, 1, "they are told once");
	tap_ok(sums.compared && !sums.failures,
	       "what can be read without them is used from then on");
}

int main(void)
{
	tap_start();
	test_right();
	test_bounds();
	test_small();
	test_one_failure();
	test_interrupted();
	test_wrong();
	return tap_done();
}
