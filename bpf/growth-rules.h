/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The three rules that raise an alert, and their constants. Only time separates a leak
 * from a cache that fills, so each rule waits as long as it can afford to:
 *
 *   limit   the limit is near and the growth is steady
 *   steady  the growth was steady for longer than a cache takes to fill
 *   slow    slow growth that went on for almost two days
 *
 * The times and shares follow from what the evaluation asks (docs/evaluation.md); the
 * others were tuned on the tuning part of its corpus.
 */
#ifndef _MW_GROWTH_RULES_H
#define _MW_GROWTH_RULES_H

#include "growth-forecast.h"

/*
 * Rule "limit": the percentage of the headroom at the origin that must be used. Below
 * one half, so that at least half of the time is still left.
 */
#define MW_GROWTH_CONSUMED 42U

/*
 * The same for an episode that may be a start-up, which fills memory fast and then
 * stops: its onset is within YOUNG_NS of the first sample, and it has not grown beyond
 * START_NS.
 */
#define MW_GROWTH_CONSUMED_START 70U
#define MW_GROWTH_START_NS	 (60 * MW_GROWTH_SECOND)
#define MW_GROWTH_YOUNG_NS	 (10 * MW_GROWTH_SECOND)

/*
 * Rule "steady": bins of level 1 (80 s) that the window must have: 25 min, or 21 min if
 * the limit is less than SOON_S away. Caches of the corpus fill in up to 15 min, which
 * cannot fill three thirds of five bins.
 */
#define MW_GROWTH_STEADY_BINS 19U
#define MW_GROWTH_SOON_BINS   16U
#define MW_GROWTH_SOON_S      3600U

/*
 * Bytes per second below which only the rule "slow" applies: within half an hour such
 * growth cannot be told from a daily wave.
 */
#define MW_GROWTH_SLOW_BPS 8192U

/*
 * Rule "slow": bins of level 3 (85 min) that the window must have; of the windows that are
 * tried, only that of 32 bins (45 h) has so many. Least R squared of its line, in
 * thousandths. Least number of bins that can be compared with the bin one day earlier.
 */
#define MW_GROWTH_SLOW_BINS  24U
#define MW_GROWTH_SLOW_R2    700U
#define MW_GROWTH_SLOW_PAIRS 6U

/*
 * For the rules about a window: the part of the growth that must be signal and not mapped
 * files, in percent.
 */
#define MW_GROWTH_SHARE_MIN 50U

/*
 * Rule "limit", checked at each sample: little time is left, a good part of the
 * headroom is used, and the episode keeps its pace.
 */
MW_INLINE int mw_growth_rule_limit(const struct mw_growth *g)
{
	__u32 grown = mw_growth_episode_growth(g);
	__u32 share = MW_GROWTH_CONSUMED;
	__u64 slope;

	if (g->onset_ns - g->first_ns < MW_GROWTH_YOUNG_NS &&
	    g->top_ns - g->first_ns < MW_GROWTH_START_NS)
		share = MW_GROWTH_CONSUMED_START;
	if (g->headroom == MW_GROWTH_NO_LIMIT || grown < MW_GROWTH_MASS ||
	    (__u64)grown * 100 < ((__u64)grown + g->headroom) * share)
		return 0;
	slope = mw_growth_episode_slope(g);
	return slope && mw_growth_eta(g->headroom, slope) <= MW_GROWTH_URGENT_S;
}

/*
 * Returns 1 if the newest bin is above everything before the last @window bins by half
 * of the growth, and above their first third by a quarter. Waves, and noise that is
 * correlated over time, come back to where they were; the envelope does not show that,
 * because after a dip it climbs from there.
 */
MW_INLINE int mw_growth_is_new_high(const struct mw_growth_level *level,
				    const struct mw_growth_trend *trend, __u32 window)
{
	__u32 newest = level->ring[(level->bin - 1) & (MW_GROWTH_BINS - 1)], i, value;
	__u32 quarter = mw_growth_sub_sat(newest, trend->growth / 4);
	__u32 half = mw_growth_sub_sat(newest, trend->growth / 2);

	for (i = 0; i < MW_GROWTH_BINS; i++) {
		if (i < window * 2 / 3)
			continue;
		if (i + 1 >= level->bin)
			break;
		value = level->ring[(level->bin - 1 - i) & (MW_GROWTH_BINS - 1)];
		if (value != MW_GROWTH_MISSING && value > (i < window ? quarter : half))
			return 0;
	}
	return 1;
}

/*
 * Returns 1 if each of the last 15 bins (21 h) is above the bin at the same time of the
 * previous day, for at least MW_GROWTH_SLOW_PAIRS pairs of bins with samples.
 */
MW_INLINE int mw_growth_is_above_yesterday(const struct mw_growth_level *level)
{
	__u32 i, now, then, pairs = 0;

	for (i = 0; i < MW_GROWTH_BINS - MW_GROWTH_SEASON; i++) {
		if (i + MW_GROWTH_SEASON + 1 >= level->bin)
			break;
		now = level->ring[(level->bin - 1 - i) & (MW_GROWTH_BINS - 1)];
		then = level->ring[(level->bin - 1 - i - MW_GROWTH_SEASON) & (MW_GROWTH_BINS - 1)];
		if (now == MW_GROWTH_MISSING || then == MW_GROWTH_MISSING)
			continue;
		if (now <= then)
			return 0;
		pairs++;
	}
	return pairs >= MW_GROWTH_SLOW_PAIRS;
}

/*
 * Rules "steady" and "slow", and "limit" for a trend of level 0; checked when a bin of
 * level @i was closed. Returns the rule that is true, or MW_GROWTH_NONE.
 */
MW_INLINE __u32 mw_growth_rule_bin(const struct mw_growth *g,
				   const struct mw_growth_history *history, __u32 i)
{
	const struct mw_growth_trend *trend = &history->trend[i];
	const struct mw_growth_level *level = &history->level[i];
	__u32 eta, window;

	if (!trend->window || trend->growth < MW_GROWTH_MASS || trend->share < MW_GROWTH_SHARE_MIN)
		return MW_GROWTH_NONE;
	if (i == 3)
		return trend->window >= MW_GROWTH_SLOW_BINS &&
				       trend->r2_permille >= MW_GROWTH_SLOW_R2 &&
				       mw_growth_is_above_yesterday(level)
			       ? MW_GROWTH_SLOW
			       : MW_GROWTH_NONE;
	if (trend->score < 100)
		return MW_GROWTH_NONE;
	eta = mw_growth_eta(g->headroom, trend->slope_bps);
	if (i == 0 && eta <= MW_GROWTH_URGENT_S &&
	    (__u64)trend->growth * 100 >= ((__u64)trend->growth + g->headroom) * MW_GROWTH_CONSUMED)
		return MW_GROWTH_LIMIT;
	window = eta <= MW_GROWTH_SOON_S ? MW_GROWTH_SOON_BINS : MW_GROWTH_STEADY_BINS;
	if (i == 1 && trend->slope_bps >= MW_GROWTH_SLOW_BPS && !trend->slowing &&
	    !history->trend[2].slowing && trend->window >= window &&
	    mw_growth_is_new_high(level, trend, window))
		return MW_GROWTH_STEADY;
	return MW_GROWTH_NONE;
}

#endif /* _MW_GROWTH_RULES_H */
