// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The 95 % confidence interval of the time to the limit, by batch means. The standard
 * error of a regression assumes that residuals are independent. Those of memory are
 * correlated over time, and a curve looks like a line with such residuals. So the growth
 * is cut into consecutive batches, each longer than the correlation, and the interval is
 * that of Student's t over the slopes of the batches. Growth that accelerates may go on
 * doing so: if that reaches the limit earlier, it is the early end of the interval. If it
 * accelerates from each batch to the next, it is expected to go on.
 */
#include "growth/interval.h"

#include <math.h>
#include <stdbool.h>

#include "base/timemath.h"

/* Least half-width of the interval of a slope, as a share of the slope. */
#define SPREAD_MIN 0.02

/* Growth accelerates if its last batch is faster than the first by this share of the mean. */
#define ACCELERATION_MIN 0.15

/*
 * What a day adds may be wrong by a factor, whose logarithm is at least FACTOR_DAYS: the newest
 * hours have the load of this day in them, and so has the time at which the rule "height" came
 * true. It is larger if days differ by much of what a day adds. Where that is not known, they are
 * taken to differ by DAYS_DIFFER of the signal. Both factors were fitted to leaks that were added
 * to the memory of real machines, see docs/evaluation.md.
 */
#define FACTOR_DAYS	1.1
#define FACTOR_QUANTILE 2
#define DAYS_DIFFER	0.1

/*
 * Uncertainty of the headroom, as shares of it. Less may be usable than without
 * MW_GROWTH_UNUSABLE, by up to 1 MiB in any case. More may be usable, because
 * pages that were counted can still be dropped. The values are estimates; docs/evaluation.md
 * says how often the interval holds the time of the kill.
 */
#define HEADROOM_LESS 0.08
#define HEADROOM_MORE 0.03

/* Two-sided 95 % quantile of Student's t over the square root of n, for 2 to 7 batches. */
static const double student[] = { 8.985, 2.484, 1.591, 1.242, 1.049, 0.925 };

/**
 * struct pace - the slope of a growth and its uncertainty
 * @slower: the lower end of the interval of the slope, as a share of the slope; if it is 0, the
 *	time to the limit has no upper bound
 * @faster: the upper end of the interval, likewise
 * @bend: change of the slope, in bytes per second squared
 * @now: slope at the end of the last batch, in bytes per second, if @bend is positive
 * @accelerates: each batch was faster than the one before, see ACCELERATION_MIN
 */
struct pace {
	double slower, faster, bend, now;
	bool accelerates;
};

/* Of a growth of which too little is known. */
static const struct pace unknown_pace = { .slower = 0, .faster = 2 };

/*
 * @seconds lie between the middles of the first and the last batch, @after between the
 * middle and the end of the last one.
 */
static struct pace pace_of_batches(const double *slopes, unsigned int n, double seconds,
				   double after)
{
	double mean = 0, square = 0, spread;
	struct pace pace = unknown_pace;

	if (n < 2)
		return pace;
	for (unsigned int i = 0; i < n; i++)
		mean += slopes[i] / n;
	for (unsigned int i = 0; i < n; i++)
		square += (slopes[i] - mean) * (slopes[i] - mean);
	if (mean > 0) {
		spread = fmax(SPREAD_MIN, student[n - 2] * sqrt(square / (n - 1)) / mean);
		pace.slower = fmax(0, 1 - spread);
		pace.faster = 1 + spread;
	}
	pace.accelerates = slopes[n - 1] - slopes[0] > ACCELERATION_MIN * mean;
	for (unsigned int i = 1; i < n; i++)
		pace.accelerates &= slopes[i] > slopes[i - 1];
	pace.bend = (slopes[n - 1] - slopes[0]) / seconds;
	pace.now = slopes[n - 1] + pace.bend * after;
	return pace;
}

static double fractional_bytes(double pages)
{
	return pages * (1U << MW_GROWTH_PAGE_SHIFT);
}

/* The batches of a trend are the thirds of its window. */
static struct pace pace_of_trend(const struct mw_growth_history *history,
				 const struct mw_growth_trend *trend)
{
	double batch = (trend->window - 1) / 3 *
		       (double)(MW_GROWTH_BIN_S << MW_GROWTH_SHIFT(trend->level));
	struct mw_growth_sums s;

	if (!mw_growth_sum_window(&history->level[trend->level], trend->window, &s))
		return unknown_pace;
	return pace_of_batches((double[]){ fractional_bytes(s.thirds - s.two_thirds) / batch,
					   fractional_bytes(s.two_thirds - s.third) / batch,
					   fractional_bytes(s.third) / batch },
			       3, 2 * batch, batch / 2);
}

/*
 * By how much the last two days before the newest one differ, in pages: from each other, or from
 * what a day adds if that fits better, because the growth may have begun before them. Otherwise
 * what is taken to be the case if they are not known.
 */
static double days_differ(const struct mw_growth_days *days, double unknown)
{
	double alike = 0, grown = 0, pace = days->pace;
	unsigned int n = 0;

	for (__u32 i = MW_GROWTH_DAY_HOURS + 1; i <= 2 * MW_GROWTH_DAY_HOURS; i++) {
		struct mw_growth_gain gain = { 0 };

		mw_growth_gain_add(days, i, i, &gain);
		n += gain.hours;
		alike += (double)gain.sum * (double)gain.sum;
		grown += gain.hours * ((double)gain.sum - pace) * ((double)gain.sum - pace);
	}
	return n >= MW_GROWTH_DAY_HOURS / 2 ? sqrt(fmin(alike, grown) / n) : unknown;
}

/* What a day adds is as uncertain as a day is. */
static struct pace pace_of_days(const struct mw_growth *g, const struct mw_growth_history *history)
{
	double differ = days_differ(&history->days, g->signal * DAYS_DIFFER);
	double factor = exp(hypot(FACTOR_DAYS, FACTOR_QUANTILE * differ / history->days.pace));

	return (struct pace){ .slower = 1 / factor, .faster = factor };
}

/* A batch of an episode or a spurt lasts from one point to the next, from @p to @end. */
static struct pace pace_of_points(const struct mw_growth_point *p,
				  const struct mw_growth_point *end)
{
	double slopes[MW_GROWTH_POINTS], first, last, after;
	unsigned int n = 0;

	if (end - p < 2)
		return unknown_pace;
	first = (p[0].ms + p[1].ms) / 2000.0;
	last = (end[-1].ms + end[0].ms) / 2000.0;
	after = (end[0].ms - end[-1].ms) / 2000.0;
	for (; p < end; p++)
		slopes[n++] = fractional_bytes((double)p[1].pages - p[0].pages) * 1000 /
			      ((double)p[1].ms - p[0].ms);
	return pace_of_batches(slopes, n, last - first, after);
}

/* The last maximum of a spurt may be one of its points. */
static struct pace pace_of_spurt(const struct mw_growth *g, const struct mw_growth_spurt *spurt)
{
	const struct mw_growth_point points[] = {
		spurt->point[0],
		spurt->point[1],
		spurt->point[2],
		{ .ms = mw_growth_top_ms(g), .pages = g->top },
	};

	return pace_of_points(points, points + (points[3].ms > points[2].ms ? 3 : 2));
}

static struct pace pace_of_episode(const struct mw_growth *g,
				   const struct mw_growth_history *history)
{
	if (history && history->spurt.slope_bps)
		return pace_of_spurt(g, &history->spurt);
	return pace_of_points(mw_growth_episode_origin(g), g->point + g->points - 1);
}

/* Seconds until growth that accelerates by @bend, which is positive, has gained @bytes. */
static double curved_seconds(double bytes, const struct pace *pace)
{
	return (sqrt(pace->now * pace->now + 2 * pace->bend * bytes) - pace->now) / pace->bend;
}

/* The early end of the interval: seconds until the growth may have gained @bytes. */
static double early_seconds(double bytes, double slope, const struct pace *pace)
{
	double even = bytes / (slope * pace->faster);

	return pace->bend > 0 ? fmin(even, curved_seconds(bytes, pace)) : even;
}

/* Seconds until the growth will have gained @bytes. */
static double likely_seconds(double bytes, double slope, const struct pace *pace)
{
	double even = bytes / slope;

	return pace->accelerates ? fmin(even, curved_seconds(bytes, pace)) : even;
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
	struct pace pace = mw_growth_goes_by_days(g, history, trend) ? pace_of_days(g, history)
			   : trend				     ? pace_of_trend(history, trend)
								     : pace_of_episode(g, history);
	__u32 left = mw_growth_peak_headroom(g, history);
	double usable = fractional_bytes(mw_growth_usable(left)), most = fractional_bytes(left);
	double least = most * (1 - HEADROOM_LESS) - fractional_bytes(MW_GROWTH_MIB);

	row->slope = mw_growth_current_slope(g, history);
	row->eta_ns = row->eta_low_ns = row->eta_high_ns = MEMWATCH_GROWTH_NONE;
	if (g->headroom == MW_GROWTH_NO_LIMIT || !row->slope)
		return;
	row->eta_ns = ns_of(likely_seconds(usable, (double)row->slope, &pace));
	row->eta_low_ns = ns_of(early_seconds(fmax(0, least), (double)row->slope, &pace));
	if (pace.slower > 0)
		row->eta_high_ns = ns_of(most * (1 + HEADROOM_MORE) /
					 ((double)row->slope * pace.slower));
}
