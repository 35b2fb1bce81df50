/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The threshold detector: which growth to extrapolate, at what slope, and how much
 * time is left until the nearest limit. Growth over many hours is that of days, see
 * growth-pace.h.
 */
#ifndef _MW_GROWTH_FORECAST_H
#define _MW_GROWTH_FORECAST_H

#include "growth-pace.h"
#include "growth-spurt.h"
#include "growth-trend.h"

/*
 * Alert when less than this is left: the evaluation asks for a lead of two minutes, and
 * half a minute more covers the period of the samples. Start-ups that are this close to
 * their limit are told apart by MW_GROWTH_CONSUMED.
 */
#define MW_GROWTH_URGENT_S 150U

/* A trend with at least this score is extrapolated unless the episode is new growth. */
#define MW_GROWTH_RELIABLE 50U

/*
 * Pages of the headroom that cannot be used. The kernel kills before the last page is charged:
 * each CPU has charged some pages in advance (64, see MEMCG_CHARGE_BATCH), and file pages in use,
 * page tables and kernel stacks are in no counter of a process. The programs that are recorded
 * for the evaluation were killed when 0.2 to 1 MiB seemed to be left.
 */
#define MW_GROWTH_UNUSABLE (3 * MW_GROWTH_MIB / 4)

/*
 * Rule "height": by how many pages hours must be above the week before. That is this part of the
 * limit, at least LEAST and at most MOST. It is MOST if there is no limit, or if it would take
 * longer than NEAR to get there.
 */
#define MW_GROWTH_HEIGHT_SHARE	32U
#define MW_GROWTH_HEIGHT_LEAST	MW_GROWTH_MIB
#define MW_GROWTH_HEIGHT_MOST	(8 * MW_GROWTH_MIB)
#define MW_GROWTH_HEIGHT_NEAR_S (7 * MW_GROWTH_DAY_S)

/* The level whose bins cover days, and its bins in a day. */
#define MW_GROWTH_DAY_LEVEL 3U
#define MW_GROWTH_DAY_BINS  17U

MW_INLINE __u32 mw_growth_usable(__u32 headroom)
{
	return headroom == MW_GROWTH_NO_LIMIT ? headroom
					      : mw_growth_sub_sat(headroom, MW_GROWTH_UNUSABLE);
}

/* Seconds until @headroom is used up. */
MW_INLINE __u32 mw_growth_eta(__u32 headroom, __u64 slope_bps)
{
	__u64 seconds;

	if (headroom == MW_GROWTH_NO_LIMIT || !slope_bps)
		return MW_GROWTH_NEVER;
	seconds = ((__u64)headroom << MW_GROWTH_PAGE_SHIFT) / slope_bps;
	return seconds >= MW_GROWTH_NEVER ? MW_GROWTH_NEVER - 1 : (__u32)seconds;
}

/*
 * Returns 1 if the episode is growth that the best trend does not describe: it gained
 * more than the window of the trend, and half of that above everything in the previous
 * bin. The rising edge of a sawtooth only comes back to where the signal was before.
 * Nor does the trend describe a spurt that is much faster.
 */
MW_INLINE int mw_growth_is_new_growth(const struct mw_growth *g,
				      const struct mw_growth_history *history)
{
	const struct mw_growth_level *level =
		&history->level[history->best.level & (MW_GROWTH_LEVELS - 1)];
	__u32 grown = mw_growth_episode_growth(g);

	if (history->spurt.slope_bps / MW_GROWTH_SPURT_FACTOR > history->best.slope_bps)
		return 1;
	return grown >= MW_GROWTH_MASS && grown > history->best.growth &&
	       mw_growth_sub_sat(g->top, level->peak) > grown / 2 && mw_growth_episode_slope(g);
}

/* The trend to extrapolate, or NULL: then it is the episode. @history may be NULL. */
MW_INLINE const struct mw_growth_trend *
mw_growth_pick_trend(const struct mw_growth *g, const struct mw_growth_history *history)
{
	if (history && history->best.score >= MW_GROWTH_RELIABLE)
		return mw_growth_is_new_growth(g, history) ? 0 : &history->best;
	if (!history || mw_growth_newest_slope(g, history))
		return 0;
	/* Growth in steps, or after a warm-up: a poor fit, but there is no better one. */
	if (history->trend[1].r2_permille >= MW_GROWTH_R2_BAD)
		return &history->trend[1];
	return history->trend[0].r2_permille >= MW_GROWTH_R2_BAD ? &history->trend[0] : 0;
}

/*
 * Does growth go on as from day to day, and not along @trend? A window of many hours is part of the
 * wave of a day.
 */
MW_INLINE int mw_growth_goes_by_days(const struct mw_growth *g,
				     const struct mw_growth_history *history,
				     const struct mw_growth_trend *trend)
{
	return history && history->days.pace && history->days.hour >= MW_GROWTH_KNOWN_HOURS &&
	       (g->reason == MW_GROWTH_HEIGHT || (trend && trend->level == MW_GROWTH_DAY_LEVEL));
}

/* Bytes per second of the growth that is extrapolated. @history may be NULL. */
MW_INLINE __u64 mw_growth_current_slope(const struct mw_growth *g,
					const struct mw_growth_history *history)
{
	const struct mw_growth_trend *trend = mw_growth_pick_trend(g, history);

	if (mw_growth_goes_by_days(g, history, trend))
		return mw_growth_days_slope(&history->days);
	return trend ? trend->slope_bps : mw_growth_newest_slope(g, history);
}

/* Pages until the limit for a signal as high as @high, or as now if that is higher. */
MW_INLINE __u32 mw_growth_headroom_above(const struct mw_growth *g, __u32 high)
{
	if (g->headroom == MW_GROWTH_NO_LIMIT)
		return g->headroom;
	return mw_growth_sub_sat(g->headroom, mw_growth_sub_sat(high, g->signal));
}

/*
 * Pages that a trend of @level may still gain before its peaks meet the limit. It follows
 * the lower envelope; the peaks above it, here of the last two bins, reach the limit first.
 */
MW_INLINE __u32 mw_growth_level_headroom(const struct mw_growth *g,
					 const struct mw_growth_level *level)
{
	return mw_growth_headroom_above(g, level->peak > level->high ? level->peak : level->high);
}

/* The same for growth from day to day: its peaks are those of the last day. */
MW_INLINE __u32 mw_growth_days_headroom(const struct mw_growth *g,
					const struct mw_growth_history *history)
{
	const struct mw_growth_level *level = &history->level[MW_GROWTH_DAY_LEVEL];
	__u32 high = level->high, i, top;

	for (i = 1; i <= MW_GROWTH_DAY_BINS; i++) {
		top = level->top[(level->bin - i) & (MW_GROWTH_BINS - 1)];
		high = mw_growth_select(top, high, high, top);
	}
	return mw_growth_headroom_above(g, high);
}

/* The same for the growth that is extrapolated. @history may be NULL. */
MW_INLINE __u32 mw_growth_peak_headroom(const struct mw_growth *g,
					const struct mw_growth_history *history)
{
	const struct mw_growth_trend *trend = mw_growth_pick_trend(g, history);

	if (mw_growth_goes_by_days(g, history, trend))
		return mw_growth_days_headroom(g, history);
	if (trend)
		return mw_growth_level_headroom(
			g, &history->level[trend->level & (MW_GROWTH_LEVELS - 1)]);
	return mw_growth_headroom_above(g, g->top);
}

/* By how many pages hours must be above the week before, for the rule "height". */
MW_INLINE __u32 mw_growth_height_margin(const struct mw_growth *g,
					const struct mw_growth_history *history)
{
	__u64 share = ((__u64)g->signal + g->headroom) / MW_GROWTH_HEIGHT_SHARE;

	if (share >= MW_GROWTH_HEIGHT_MOST ||
	    mw_growth_eta(mw_growth_days_headroom(g, history),
			  mw_growth_days_slope(&history->days)) > MW_GROWTH_HEIGHT_NEAR_S)
		return MW_GROWTH_HEIGHT_MOST;
	return share < MW_GROWTH_HEIGHT_LEAST ? MW_GROWTH_HEIGHT_LEAST : (__u32)share;
}

/*
 * The score of the threshold detector: 100 for a limit within MW_GROWTH_URGENT_S, 10
 * less for each doubling of the time, and 0 for more than 21 hours.
 */
MW_INLINE __u32 mw_growth_score_eta(__u32 eta)
{
	__u32 score = 100, bound = MW_GROWTH_URGENT_S, i;

	for (i = 0; i < 10; i++) {
		if (eta <= bound)
			break;
		bound *= 2;
		score -= 10;
	}
	return score;
}

#endif /* _MW_GROWTH_FORECAST_H */
