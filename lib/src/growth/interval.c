// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * An interval of 95 % for the time to the limit, by batch means. The standard error
 * that comes with a line takes its residuals for independent; those of memory are not,
 * and a curve is a line with such residuals. So the growth is cut into consecutive
 * batches, each longer than what the residuals remember, and the interval is that of
 * Student over the slopes of the batches. A growth that gets faster may go on getting
 * faster: that is the early end, if it comes before.
 */
#include "growth/interval.h"

#include <math.h>

#include "base/timemath.h"

/* Less than this share of the slope no trace can tell. */
#define LEAST 0.02

/*
 * Shares of the headroom. Not all of it is there to be used: page tables and stacks of the
 * kernel are in no counter of a process, and the last MiB of file pages is in use and
 * stays. And pages that were counted may yet be dropped.
 */
#define NOT_THERE  0.08
#define MORE_THERE 0.03

/* Student's t over the root of n, 95 % of both sides together, for 2 to 7 batches. */
static const double student[] = { 8.985, 2.484, 1.591, 1.242, 1.049, 0.925 };

/**
 * struct pace - a growth in batches
 * @spread: half of the interval of the slope, as a share of it; 1 and more: no end
 * @bend: bytes a second, by which it gains each second
 * @now: bytes a second at the end of the last batch, if it bends
 */
struct pace {
	double spread, bend, now;
};

/* @seconds between the middles of the first and the last batch, @after the last one's. */
static struct pace pace_of(const double *slopes, unsigned int n, double seconds, double after)
{
	struct pace pace = { .spread = 1 };
	double mean = 0, square = 0;

	if (n < 2)
		return pace;
	for (unsigned int i = 0; i < n; i++)
		mean += slopes[i] / n;
	for (unsigned int i = 0; i < n; i++)
		square += (slopes[i] - mean) * (slopes[i] - mean);
	if (mean > 0)
		pace.spread = fmax(LEAST, student[n - 2] * sqrt(square / (n - 1)) / mean);
	pace.bend = (slopes[n - 1] - slopes[0]) / seconds;
	pace.now = slopes[n - 1] + pace.bend * after;
	return pace;
}

static double bytes_of(double pages)
{
	return pages * (1U << MW_GROWTH_PAGE_SHIFT);
}

/* The thirds of the window, as its tests have them. */
static struct pace pace_of_trend(const struct mw_growth_history *history,
				 const struct mw_growth_trend *trend)
{
	double batch = (trend->window - 1) / 3 *
		       (double)(MW_GROWTH_BIN_S << MW_GROWTH_SHIFT(trend->level));
	struct mw_growth_sums s;

	if (!mw_growth_sum_window(&history->level[trend->level], trend->window, &s))
		return (struct pace){ .spread = 1 };
	return pace_of((double[]){ bytes_of(s.thirds - s.two_thirds) / batch,
				   bytes_of(s.two_thirds - s.third) / batch,
				   bytes_of(s.third) / batch },
		       3, 2 * batch, batch / 2);
}

/* From point to point. */
static struct pace pace_of_episode(const struct mw_growth *g)
{
	const struct mw_growth_point *p = mw_growth_episode_origin(g),
				     *end = g->point + g->points - 1;
	double slopes[MW_GROWTH_POINTS], first, last, after;
	unsigned int n = 0;

	if (end - p < 2)
		return (struct pace){ .spread = 1 };
	first = (p[0].ms + p[1].ms) / 2000.0;
	last = (end[-1].ms + end[0].ms) / 2000.0;
	after = (end[0].ms - end[-1].ms) / 2000.0;
	for (; p < end; p++)
		slopes[n++] = bytes_of((double)p[1].pages - p[0].pages) * 1000 /
			      ((double)p[1].ms - p[0].ms);
	return pace_of(slopes, n, last - first, after);
}

/* Seconds until @bytes are grown. */
static double early(double bytes, double slope, const struct pace *pace)
{
	double even = bytes / (slope * (1 + pace->spread)), root;

	if (pace->bend <= 0)
		return even;
	root = sqrt(pace->now * pace->now + 2 * pace->bend * bytes);
	return fmin(even, (root - pace->now) / pace->bend);
}

static __u64 ns_of(double seconds)
{
	return seconds < (double)(MEMWATCH_GROWTH_NONE / MW_NSEC_PER_SEC)
		       ? (__u64)(seconds * MW_NSEC_PER_SEC)
		       : MEMWATCH_GROWTH_NONE - 1;
}

void mw_growth_fill_eta(struct memwatch_growth_row *row, const struct mw_growth *g,
			const struct mw_growth_history *history)
{
	const struct mw_growth_trend *trend = mw_growth_pick_trend(g, history);
	struct pace pace = trend ? pace_of_trend(history, trend) : pace_of_episode(g);
	double headroom = bytes_of(mw_growth_peak_headroom(g, history)), sure;

	row->slope = mw_growth_current_slope(g, history);
	row->eta_ns = row->eta_low_ns = row->eta_high_ns = MEMWATCH_GROWTH_NONE;
	if (g->headroom == MW_GROWTH_NO_LIMIT || !row->slope)
		return;
	row->eta_ns = ns_of(headroom / (double)row->slope);
	sure = fmax(0, headroom * (1 - NOT_THERE) - bytes_of(MW_GROWTH_MIB));
	row->eta_low_ns = ns_of(early(sure, (double)row->slope, &pace));
	if (pace.spread < 1)
		row->eta_high_ns = ns_of(headroom * (1 + MORE_THERE) /
					 ((double)row->slope * (1 - pace.spread)));
}
