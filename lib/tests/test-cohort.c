// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The sample of pages, and what is concluded from it. Pages come and go, become huge and are split;
 * the shares and intervals are compared with values from elsewhere.
 */
#include <stdlib.h>
#include <string.h>

#include "growth/cohort.h"

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"

#define STEP  (10 * MW_GROWTH_SECOND)
#define START (1000 * MW_GROWTH_SECOND)
#define BASE  0x7f0000000000ULL
#define PAGE  4096ULL
#define HUGE  (1ULL << MW_TOUCH_REGION_SHIFT)

static struct prng prng = { 1 };

/* What the visits of a test find. */
static __u64 pages[MW_TOUCH_PAGES], cleared[MW_TOUCH_PAGES];

static uint32_t put_pages(uint32_t at, uint64_t from, uint32_t count, __u64 bits)
{
	for (uint32_t i = 0; i < count; i++)
		pages[at + i] = (from + i * PAGE) | bits;
	return at + count;
}

static void test_sample(void)
{
	uint32_t wrong = 0, coarse = 0, pages_of[12] = { 0 };

	for (uint32_t region = 0; region < 4096; region++) {
		uint64_t at = BASE + region * HUGE;

		for (uint32_t i = 0; i < MW_TOUCH_REGION_PAGES; i++)
			for (uint32_t shift = 0; shift < 12; shift++) {
				int sampled = mw_touch_samples_page(at + i * PAGE, shift);

				pages_of[shift] += (uint32_t)sampled;
				/* What is in a coarse sample is in each finer one. */
				wrong += shift && sampled &&
					 !mw_touch_samples_page(at + i * PAGE, shift - 1);
			}
		coarse += (uint32_t)mw_touch_samples_page(at | MW_TOUCH_HUGE, 11);
	}
	tap_eq(wrong, 0, "a coarser sample is a part of a finer one");
	tap_eq(pages_of[0], 4096 * 512, "with shift 0 all pages are in the sample");
	tap_eq(pages_of[9], 4096, "with shift 9 one of each 2 MiB");
	tap_eq(pages_of[4], 4096 * 32, "with shift 4 one of 16");
	tap_ok(pages_of[11] > 900 && pages_of[11] < 1150,
	       "with shift 11 about one of four 2 MiB: %u", pages_of[11]);
	tap_eq(coarse, pages_of[11], "a huge page is in the sample where a small one would be");
	tap_eq(mw_touch_weight(BASE, 3), 8, "a small page stands for those that were left out");
	tap_eq(mw_touch_weight(BASE | MW_TOUCH_HUGE, 3), 512, "a huge one for itself");
	tap_eq(mw_touch_weight(BASE | MW_TOUCH_HUGE, 10), 1024,
	       "a huge page stands for those left out, too");
}

static void test_fit(void)
{
	struct mw_cohort cohort;
	uint64_t all = 0;

	mw_cohort_init(&cohort, 100000, MW_TOUCH_PAGES);
	tap_eq(cohort.shift, 7,
	       "the first sample of 100000 pages is at most a quarter of the room");
	tap_ok(!mw_cohort_fit(&cohort, MW_TOUCH_PAGES), "a full sample fits");
	mw_cohort_init(&cohort, 1, MW_TOUCH_PAGES);
	mw_cohort_visit(&cohort, START, pages, put_pages(0, BASE, MW_TOUCH_PAGES, 0), cleared);
	tap_ok(mw_cohort_fit(&cohort, 5 * MW_TOUCH_PAGES), "one that is too large is made coarser");
	tap_eq(cohort.shift, 4, "until it takes half of the room");
	for (uint32_t i = 0; i < cohort.count; i++)
		all += mw_touch_samples_page(cohort.page[i].at, 4);
	tap_eq(all, MW_TOUCH_PAGES / 16, "the pages of the coarser sample stay");
	tap_eq(all, cohort.count, "no other pages stay");
	mw_cohort_uninit(&cohort);
}

/* Visits @times with @old pages, @cold, and @warm pages that are touched each time. */
static uint64_t visit_times(struct mw_cohort *cohort, uint64_t now, unsigned int times,
			    uint32_t cold, uint32_t warm)
{
	for (unsigned int i = 0; i < times; i++) {
		uint32_t count = put_pages(0, BASE, 100, 0);

		count = put_pages(count, BASE + HUGE, cold, i ? 0 : MW_TOUCH_YOUNG);
		count = put_pages(count, BASE + 16 * HUGE, warm, MW_TOUCH_YOUNG);
		mw_cohort_visit(cohort, now, pages, count, cleared);
		now += STEP;
	}
	return now - STEP;
}

static uint64_t begin(struct mw_cohort *cohort)
{
	mw_cohort_init(cohort, 1, MW_TOUCH_PAGES);
	mw_cohort_visit(cohort, START, pages, put_pages(0, BASE, 100, MW_TOUCH_YOUNG), cleared);
	return START + STEP;
}

/* The intervals are those of scipy.stats.binomtest().proportion_ci(method="wilson"). */
static void test_intervals(void)
{
	static const struct {
		uint32_t cold, warm, low, high;
	} cases[] = {
		{ 50, 50, 40, 60 },    /* 0.4038 to 0.5962 */
		{ 100, 0, 96, 100 },   /* 0.9630 to 1 */
		{ 0, 100, 0, 4 },      /* 0 to 0.0370 */
		{ 900, 100, 880, 917 } /* 0.8799 to 0.9172 */
	};
	struct mw_growth_touch touch;
	struct mw_cohort cohort;
	uint64_t now;

	for (unsigned int i = 0; i < 4; i++) {
		now = visit_times(&cohort, begin(&cohort), 12, cases[i].cold, cases[i].warm);
		mw_cohort_measure(&cohort, now, &touch);
		tap_eq(touch.gained, cases[i].cold + cases[i].warm, "gained");
		tap_eq(touch.cold, cases[i].cold, "cold");
		tap_eq(touch.cold_low, cases[i].low, "the lower end of the interval");
		tap_eq(touch.cold_high, cases[i].high, "its upper end");
		mw_cohort_uninit(&cohort);
	}
}

static void test_time(void)
{
	struct mw_growth_touch touch;
	struct mw_cohort cohort;
	uint64_t now;

	now = visit_times(&cohort, begin(&cohort), 9, 100, 0);
	mw_cohort_measure(&cohort, now, &touch);
	tap_eq(touch.gained, 0, "after 80 s nothing is known");
	now = visit_times(&cohort, now + STEP, 2, 100, 0);
	mw_cohort_measure(&cohort, now, &touch);
	tap_eq(touch.gained, 100, "after 90 s it is");
	tap_eq(touch.untouched_s, 60, "what is cold was not touched for a minute");
	mw_cohort_uninit(&cohort);
	now = visit_times(&cohort, begin(&cohort), 5, 7, 0);
	mw_cohort_measure(&cohort, START + 4000 * MW_GROWTH_SECOND, &touch);
	tap_eq(touch.gained, 0, "of seven pages nothing is said");
	mw_cohort_uninit(&cohort);
	visit_times(&cohort, begin(&cohort), 5, 100, 0);
	mw_cohort_measure(&cohort, START + 1200 * MW_GROWTH_SECOND, &touch);
	tap_eq(touch.untouched_s, 300, "after 20 minutes it is a quarter of that");
	mw_cohort_measure(&cohort, START + 9000 * MW_GROWTH_SECOND, &touch);
	tap_eq(touch.untouched_s, 600,
	       "cold memory need not be untouched for more than ten minutes");
	mw_cohort_uninit(&cohort);
}

/* What is cleared is what was gained and touched; what was there before is never. */
static void test_clear(void)
{
	struct mw_cohort cohort;
	uint64_t now = begin(&cohort);
	uint32_t count = put_pages(0, BASE, 100, MW_TOUCH_YOUNG);

	count = put_pages(count, BASE + HUGE, 10, MW_TOUCH_YOUNG);
	count = put_pages(count, BASE + 2 * HUGE, 10, 0);
	pages[count++] = (BASE + 4 * HUGE) | MW_TOUCH_YOUNG | MW_TOUCH_HUGE;
	tap_eq(mw_cohort_visit(&cohort, now, pages, count, cleared), 11, "11 pages are cleared");
	tap_eq(cleared[0], BASE + HUGE, "the first that was gained");
	tap_eq(cleared[10], (BASE + 4 * HUGE) | MW_TOUCH_HUGE, "the huge page is cleared as such");
	mw_cohort_drop(&cohort, cleared[3]);
	tap_eq(mw_cohort_visit(&cohort, now + STEP, pages, count, cleared), 10,
	       "what cannot be cleared is left out from then on");
	mw_cohort_uninit(&cohort);
}

static void test_huge_and_back(void)
{
	struct mw_growth_touch touch;
	struct mw_cohort cohort;
	uint64_t now = begin(&cohort);
	uint32_t count;

	/* The old pages become a huge one, which is not gained. */
	pages[0] = BASE | MW_TOUCH_HUGE;
	count = put_pages(1, BASE + HUGE, 512, MW_TOUCH_YOUNG);
	mw_cohort_visit(&cohort, now, pages, count, cleared);
	tap_ok(cohort.page[0].old, "a huge page of old pages is old");
	/* So do the new ones, and are split again later. */
	pages[1] = (BASE + HUGE) | MW_TOUCH_HUGE;
	mw_cohort_visit(&cohort, now + STEP, pages, 2, cleared);
	tap_eq(cohort.page[1].born_ns, now, "a huge page is as old as those it was made of");
	mw_cohort_visit(&cohort, now + 2 * STEP, pages, put_pages(1, BASE + HUGE, 512, 0), cleared);
	mw_cohort_measure(&cohort, now + 9 * STEP, &touch);
	tap_eq(touch.gained, 512, "the pages that it is split into are as old");
	tap_eq(touch.cold, 512, "which are cold");
	mw_cohort_uninit(&cohort);
}

static void test_sweeps(void)
{
	struct mw_growth_touch touch;
	struct mw_cohort cohort;
	uint64_t now = begin(&cohort);

	for (unsigned int i = 0; i < 40; i++, now += STEP) {
		__u64 all = !i || i % 6 == 5 ? MW_TOUCH_YOUNG : 0;
		uint32_t count = put_pages(0, BASE, 100, 0);

		count = put_pages(count, BASE + HUGE, 200, all);
		/* A tenth is in use. */
		count = put_pages(count, BASE + 2 * HUGE, 20, MW_TOUCH_YOUNG);
		mw_cohort_visit(&cohort, now, pages, count, cleared);
	}
	mw_cohort_measure(&cohort, now, &touch);
	tap_eq(touch.cold, 200, "what only a collector sweeps is cold");
	tap_eq(touch.gained, 220, "of all that was gained");
	tap_eq(cohort.sweeps, 6, "the sweeps were recognised");
	mw_cohort_uninit(&cohort);
	/* New suspects cause visits in between, in which a page is not quiet for long. */
	now = begin(&cohort);
	for (unsigned int i = 0; i < 40; i++, now += i % 4 ? MW_GROWTH_SECOND : STEP) {
		uint32_t count = put_pages(0, BASE, 100, 0);

		count = put_pages(count, BASE + HUGE, 200, i % 4 ? 0 : MW_TOUCH_YOUNG);
		mw_cohort_visit(&cohort, now, pages, count, cleared);
	}
	tap_eq(cohort.sweeps, 0, "what is used every 13 s is not swept, however many visits come");
	mw_cohort_uninit(&cohort);
	/* A program that uses a random fifth of its memory in ten seconds is no collector. */
	now = begin(&cohort);
	for (unsigned int i = 0; i < 40; i++, now += STEP) {
		uint32_t count = put_pages(0, BASE, 100, 0);

		for (unsigned int page = 0; page < 400; page++, count++)
			pages[count] = (BASE + HUGE + page * PAGE) |
				       (prng_below(&prng, 5) ? 0 : MW_TOUCH_YOUNG);
		mw_cohort_visit(&cohort, now, pages, count, cleared);
	}
	mw_cohort_measure(&cohort, now, &touch);
	tap_eq(cohort.sweeps, 0, "random use is no sweep");
	tap_ok(touch.cold < 10, "what is used at random is warm: %u of 400 pages are cold",
	       touch.cold);
	mw_cohort_uninit(&cohort);
}

/* Pages that come, go, are huge or shared at random: no sum may exceed what there is. */
static void test_random(void)
{
	struct mw_growth_touch touch;
	struct mw_cohort cohort;
	uint64_t now = begin(&cohort);
	uint32_t wrong = 0;

	for (unsigned int i = 0; i < 300; i++, now += STEP) {
		uint32_t count = 0;
		uint64_t at = BASE;
		int n;

		while (count < MW_TOUCH_PAGES && at < BASE + 64 * HUGE) {
			__u64 bits = prng_below(&prng, 16);

			if (bits & MW_TOUCH_HUGE)
				at = (at + HUGE - 1) & ~(HUGE - 1);
			pages[count++] = at | bits;
			at += bits & MW_TOUCH_HUGE ? HUGE : PAGE * (1 + prng_below(&prng, 60));
		}
		n = mw_cohort_visit(&cohort, now, pages, count, cleared);
		mw_cohort_measure(&cohort, now, &touch);
		wrong += n < 0 || (uint32_t)n > count || cohort.count != count ||
			 touch.cold_low > touch.cold || touch.cold > touch.cold_high ||
			 touch.cold_high > touch.gained;
		if (!prng_below(&prng, 20))
			mw_cohort_fit(&cohort, MW_TOUCH_PAGES + prng_below(&prng, 9000));
	}
	tap_eq(wrong, 0, "random visits give results that are in order");
	mw_cohort_uninit(&cohort);
}

int main(void)
{
	tap_start();
	test_sample();
	test_fit();
	test_intervals();
	test_time();
	test_clear();
	test_huge_and_back();
	test_sweeps();
	test_random();
	return tap_done();
}
