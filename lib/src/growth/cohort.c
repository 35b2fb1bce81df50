// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A page is cold if it was not touched any more once it was GRACE_NS old, in which time it is
 * filled. A sweep of a garbage collector touches everything and says nothing about what is needed:
 * it is known by touching at once nearly all of what was not touched for some visits.
 */
#include "growth/cohort.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/timemath.h"

/* A page is filled in the time after it was seen first. */
#define GRACE_NS (30 * MW_GROWTH_SECOND)

/*
 * For how long a page must be untouched to be called cold: a quarter of the time since the process
 * became a suspect, within these bounds.
 */
#define UNTOUCHED_MIN_NS (60 * MW_GROWTH_SECOND)
#define UNTOUCHED_MAX_NS (600 * MW_GROWTH_SECOND)

/* Fewer pages say too little. */
#define PAGES_MIN 8

/*
 * A sweep: of the pages that were quiet for so many visits and so long, which are at least half of
 * the cohort and so many, it touches at least so many percent.
 */
#define SWEEP_QUIET    2
#define SWEEP_QUIET_NS (20 * MW_GROWTH_SECOND)
#define SWEEP_PAGES    16
#define SWEEP_PERCENT  80

/* The quantile of the normal distribution for an interval of 95 %. */
#define Z 1.96

static bool fits(uint64_t pages, uint32_t shift, uint32_t room)
{
	return pages >> shift <= room;
}

void mw_cohort_init(struct mw_cohort *cohort, uint64_t pages, uint32_t room)
{
	memset(cohort, 0, sizeof(*cohort));
	cohort->room = room;
	/* With room for twice as many pages, and for a process whose pages are few in each table.
	 */
	while (!fits(pages, cohort->shift, room / 4))
		cohort->shift++;
}

void mw_cohort_uninit(struct mw_cohort *cohort)
{
	free(cohort->page);
	cohort->page = NULL;
	cohort->count = 0;
}

bool mw_cohort_fit(struct mw_cohort *cohort, uint64_t pages)
{
	uint32_t shift = cohort->shift, kept = 0;

	if (fits(pages, 0, cohort->room))
		return false;
	while (!fits(pages, cohort->shift - shift, cohort->room / 2))
		cohort->shift++;
	for (uint32_t i = 0; i < cohort->count; i++)
		if (mw_touch_samples_page(cohort->page[i].at, cohort->shift))
			cohort->page[kept++] = cohort->page[i];
	cohort->count = kept;
	return true;
}

static uint64_t region_of(uint64_t at)
{
	return at >> MW_TOUCH_REGION_SHIFT;
}

/* The first page of the cohort that is not below @at. */
static uint32_t find_place(const struct mw_cohort *cohort, uint64_t at)
{
	uint32_t low = 0, high = cohort->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (cohort->page[middle].at < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * The page of the cohort that the page @at was before this visit, or NULL. When the kernel makes a
 * huge page of small ones or splits one, what was known of any of them is known of all.
 */
static const struct mw_cohort_page *find_before(const struct mw_cohort *cohort, uint64_t at)
{
	uint32_t i = find_place(cohort, at);
	const struct mw_cohort_page *page = &cohort->page[i];

	if (i < cohort->count && page->at == at)
		return page;
	i = find_place(cohort, region_of(at) << MW_TOUCH_REGION_SHIFT);
	page = &cohort->page[i];
	if (i < cohort->count && region_of(page->at) == region_of(at) &&
	    ((page->at | at) & MW_TOUCH_HUGE))
		return page;
	return NULL;
}

static bool was_touched(uint64_t found)
{
	return found & MW_TOUCH_YOUNG;
}

static uint64_t place_of(uint64_t found)
{
	return found & (MW_TOUCH_ADDRESS | MW_TOUCH_HUGE);
}

static bool is_quiet(const struct mw_cohort_page *page, uint64_t now_ns)
{
	return page->quiet >= SWEEP_QUIET && now_ns - page->touched_ns > SWEEP_QUIET_NS;
}

/* Is this visit one that follows the sweep of a collector? */
static bool is_sweep(const struct mw_cohort *cohort, uint64_t now_ns, const __u64 *pages,
		     uint32_t count)
{
	uint64_t all = 0, quiet = 0, touched = 0, n = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct mw_cohort_page *page = find_before(cohort, place_of(pages[i]));
		uint64_t weight = mw_touch_weight(pages[i], cohort->shift);

		if (!page || page->old)
			continue;
		all += weight;
		if (!is_quiet(page, now_ns))
			continue;
		quiet += weight;
		n++;
		if (was_touched(pages[i]))
			touched += weight;
	}
	return n >= SWEEP_PAGES && quiet * 2 >= all && touched * 100 >= quiet * SWEEP_PERCENT;
}

/* What is known of the page @found after this visit. */
static struct mw_cohort_page follow_page(const struct mw_cohort *cohort, uint64_t found,
					 uint64_t now_ns, bool sweep)
{
	const struct mw_cohort_page *before = find_before(cohort, place_of(found));
	struct mw_cohort_page page = { .born_ns = now_ns, .touched_ns = now_ns };

	if (before) {
		page = *before;
		page.visits++;
		page.quiet++;
		page.blind += !!(found & MW_TOUCH_SHARED);
		if (was_touched(found) && !(sweep && is_quiet(before, now_ns))) {
			page.touched_ns = now_ns;
			page.quiet = 0;
		}
	} else {
		page.old = cohort->start_ns == now_ns;
	}
	page.at = place_of(found);
	return page;
}

int mw_cohort_visit(struct mw_cohort *cohort, uint64_t now_ns, const __u64 *pages, uint32_t count,
		    __u64 *clear)
{
	struct mw_cohort_page *next = calloc(count + 1, sizeof(*next));
	int cleared = 0;
	bool sweep;

	if (!next)
		return -ENOMEM;
	if (!cohort->start_ns)
		cohort->start_ns = now_ns;
	sweep = is_sweep(cohort, now_ns, pages, count);
	cohort->sweeps += sweep;
	for (uint32_t i = 0; i < count; i++) {
		next[i] = follow_page(cohort, pages[i], now_ns, sweep);
		if (!next[i].old && was_touched(pages[i]))
			clear[cleared++] = next[i].at;
	}
	free(cohort->page);
	cohort->page = next;
	cohort->count = count;
	return cleared;
}

void mw_cohort_drop(struct mw_cohort *cohort, uint64_t page)
{
	uint32_t i = find_place(cohort, page);

	if (i < cohort->count && cohort->page[i].at == page)
		cohort->page[i].old = true;
}

/* The sums over a part of the cohort that an interval is computed from. */
struct sums {
	double all, cold;
	double squares; /* of the weights */
	uint32_t pages;
};

/*
 * Wilson's interval for the share of cold pages. A huge page counts as one observation that weighs
 * more, which makes the number of observations less than that of the pages.
 */
static void fill_interval(const struct sums *sums, struct mw_growth_touch *ret)
{
	double n = sums->all * sums->all / sums->squares, p = sums->cold / sums->all;
	double middle = (p + Z * Z / (2 * n)) / (1 + Z * Z / n);
	double half = Z / (1 + Z * Z / n) * sqrt(p * (1 - p) / n + Z * Z / (4 * n * n));
	double most = MW_GROWTH_NO_LIMIT - 1;

	ret->gained = (uint32_t)fmin(sums->all, most);
	ret->cold = (uint32_t)fmin(sums->cold, most);
	ret->cold_low = (uint32_t)fmin(round(fmax(middle - half, 0) * sums->all), most);
	ret->cold_high = (uint32_t)fmin(round(fmin(middle + half, 1) * sums->all), most);
}

void mw_cohort_measure(const struct mw_cohort *cohort, uint64_t now_ns, struct mw_growth_touch *ret)
{
	uint64_t untouched = (now_ns - cohort->start_ns) / 4;
	struct sums sums = { 0 };

	memset(ret, 0, sizeof(*ret));
	untouched = mw_min_u64(UNTOUCHED_MAX_NS, mw_max_u64(UNTOUCHED_MIN_NS, untouched));
	ret->untouched_s = (uint32_t)(untouched / MW_GROWTH_SECOND);
	for (uint32_t i = 0; i < cohort->count; i++) {
		const struct mw_cohort_page *page = &cohort->page[i];
		double weight = (double)mw_touch_weight(page->at, cohort->shift);

		if (page->old || now_ns - page->born_ns < untouched + GRACE_NS ||
		    page->blind * 2 > page->visits)
			continue;
		sums.all += weight;
		sums.squares += weight * weight;
		sums.pages++;
		if (page->touched_ns - page->born_ns <= GRACE_NS)
			sums.cold += weight;
	}
	if (sums.pages < PAGES_MIN)
		return;
	fill_interval(&sums, ret);
}
