/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The rules that raise an alert, and their constants. The counters of memory cannot tell a leak
 * from a cache that fills or from a morning, so an alert waits for one of two things that an
 * operator has to know in any case, or for a proof:
 *
 *   limit      the limit is near, and the growth is new, steady and goes on
 *   height     for hours, more memory than in the whole week before
 *   untouched  for 40 minutes it has gained memory and not used it any more
 *
 * The times and shares follow from what the evaluation asks (docs/evaluation.md); the
 * others were tuned on the tuning part of its corpus, COLD_SHARE on its recording of real
 * programs with touch.
 */
#ifndef _MW_GROWTH_RULES_H
#define _MW_GROWTH_RULES_H

#include "growth-notice.h"

/*
 * Rule "limit": the percentage of the headroom that the growth must have used, counted
 * from its origin and above all that was there before. Below one half, so that at least
 * half of the time is still left.
 */
#define MW_GROWTH_CONSUMED 42U

/*
 * The same for growth that is likely to be meant: start-ups, caches and heaps that are sized
 * for their limit fill it to 90 % and stop.
 */
#define MW_GROWTH_CONSUMED_MEANT 92U

/*
 * A start-up: its onset is within YOUNG_NS of the first sample, and it lasts START_NS. A process
 * that waits before it loads its data begins later, within START_NS, and takes up to LOAD_NS. By
 * its counters it leaks, so this holds only where touch will tell; and not for a process that never
 * had less than a fifth of its limit: it ran before it was seen for the first time.
 */
#define MW_GROWTH_START_NS (120 * MW_GROWTH_SECOND)
#define MW_GROWTH_YOUNG_NS (10 * MW_GROWTH_SECOND)
#define MW_GROWTH_LOAD_NS  (900 * MW_GROWTH_SECOND)

/*
 * A process that never had less than two thirds of its limit is sized for it; so is one that
 * is known for less than SIZED_NS and never had less than half.
 */
#define MW_GROWTH_SIZED_NS (1800 * MW_GROWTH_SECOND)

/*
 * Rule "untouched": the time for which touch was followed since the notice, the percentage of what
 * was gained that must be cold, surely, and the time since the last maximum. What leaks is not
 * touched again, but nor is a table that is loaded once or a cache whose entries nobody reads,
 * until it has reached its size. Most of these have after 40 minutes.
 */
#define MW_GROWTH_COLD_S	  2400U
#define MW_GROWTH_COLD_SHARE	  75U
#define MW_GROWTH_COLD_PROGRESS_S 60U

/*
 * Rule "height": growth of which surely less than this percentage is cold is memory in use, and
 * stays a notice. It is a small share because a leak below a daily wave is a part of what a process
 * gains in a morning, and the rest of that is in use.
 */
#define MW_GROWTH_USED_SHARE 10U

/* The part of the growth of a window that must be signal and not mapped files, in percent. */
#define MW_GROWTH_SHARE_MIN 50U

/* Is what was gained cold, surely? Of less than MW_GROWTH_MASS, much may be so by chance. */
MW_INLINE int mw_growth_is_cold(const struct mw_growth_touch *touch)
{
	return touch->gained >= MW_GROWTH_MASS &&
	       (__u64)touch->cold_low * 100 >= (__u64)touch->gained * MW_GROWTH_COLD_SHARE;
}

/*
 * Does the process start, for all that is known, and not gain what surely is cold? What its program
 * did when it ran before says more than that.
 */
MW_INLINE int mw_growth_is_starting(const struct mw_growth *g, const struct mw_growth_touch *touch)
{
	__u64 limit = (__u64)g->signal + g->headroom;
	__u64 waits = g->onset_ns - g->first_ns, lasts = g->top_ns - g->first_ns;

	if (g->flags & MW_GROWTH_F_KNOWN)
		return 0;
	if (waits < MW_GROWTH_YOUNG_NS && lasts < MW_GROWTH_START_NS)
		return 1;
	return touch->untouched_s && !mw_growth_is_cold(touch) && waits < MW_GROWTH_START_NS &&
	       lasts < MW_GROWTH_LOAD_NS && (__u64)g->floor * 5 < limit;
}

/*
 * The percentage of the headroom that a process, or a class of a group, must have used for the
 * rule "limit", if it @starts and if not.
 */
MW_INLINE __u32 mw_growth_consumed_share(const struct mw_growth *g, int starts)
{
	__u64 limit = (__u64)g->signal + g->headroom, floor = g->floor;

	if (starts || g->flags & MW_GROWTH_F_WARM || floor * 3 >= limit * 2)
		return MW_GROWTH_CONSUMED_MEANT;
	if (g->last_ns - g->first_ns < MW_GROWTH_SIZED_NS && floor * 2 >= limit)
		return MW_GROWTH_CONSUMED_MEANT;
	return MW_GROWTH_CONSUMED;
}

/* Has @growth used @share percent of the headroom before it, of which @left pages are left? */
MW_INLINE int mw_growth_has_consumed(__u32 growth, __u32 left, __u32 share)
{
	return (__u64)growth * 100 >= ((__u64)growth + left) * share;
}

/* The same for the share that @growth of a process must have used for the rule "limit". */
MW_INLINE int mw_growth_nears_limit(const struct mw_growth *g, __u32 growth, __u32 left)
{
	__u32 share = mw_growth_consumed_share(g, g->flags & MW_GROWTH_F_STARTING);

	return mw_growth_has_consumed(growth, left, share);
}

/*
 * Does growth from @from pages on, at @slope_bps, leave little time, and has it used a good part of
 * the headroom? What the process has had before is not new: it may come back to it at any time. Nor
 * is a gain news that is smaller than what the signal has moved by before.
 */
MW_INLINE int mw_growth_is_urgent(const struct mw_growth *g, __u32 from, __u64 slope_bps)
{
	__u32 gained = mw_growth_sub_sat(g->top, g->ceiling > from ? g->ceiling : from);

	if (gained < MW_GROWTH_MASS || gained <= mw_growth_sub_sat(g->ceiling, g->floor) ||
	    !mw_growth_nears_limit(g, gained, g->headroom))
		return 0;
	return slope_bps && mw_growth_eta(g->headroom, slope_bps) <= MW_GROWTH_URGENT_S;
}

/*
 * Rule "limit", checked at each sample: a notice holds, and the episode, or its spurt, keeps its
 * pace and is urgent. @history may be NULL.
 */
MW_INLINE int mw_growth_rule_limit(const struct mw_growth *g,
				   const struct mw_growth_history *history)
{
	if (g->headroom == MW_GROWTH_NO_LIMIT || !(g->flags & MW_GROWTH_F_NOTICE))
		return 0;
	if (history &&
	    mw_growth_is_urgent(g, history->spurt.point[0].pages, history->spurt.slope_bps))
		return 1;
	return mw_growth_is_urgent(g, mw_growth_episode_origin(g)->pages,
				   mw_growth_episode_slope(g));
}

/*
 * Returns 1 if the peak of the newest bin is above all peaks before the window, by a fifth
 * of the growth. Waves, and noise that is correlated over time, come back to where they
 * were; the envelope does not show that, because after a dip it climbs from there.
 */
MW_INLINE int mw_growth_is_new_high(const struct mw_growth_level *level,
				    const struct mw_growth_trend *trend)
{
	__u32 newest = level->top[(level->bin - 1) & (MW_GROWTH_BINS - 1)], i;
	__u32 most = mw_growth_sub_sat(newest, trend->growth / 5);

	if (level->ever > most)
		return 0;
	for (i = 0; i < MW_GROWTH_BINS; i++) {
		if (i < trend->window)
			continue;
		if (i + 1 > level->bin)
			break;
		if (level->top[(level->bin - 1 - i) & (MW_GROWTH_BINS - 1)] > most)
			return 0;
	}
	return 1;
}

/*
 * Rule "limit" for the trend of level @i, checked at each sample for the levels 0 and 1. The
 * next peak may be higher than those of the samples by what the signal gains between two; but
 * a trend that is small beside such jumps says nothing about them.
 */
MW_INLINE int mw_growth_rule_trend(const struct mw_growth *g,
				   const struct mw_growth_history *history, __u32 i)
{
	const struct mw_growth_level *level = &history->level[i];
	const struct mw_growth_trend *trend = &history->trend[i];
	__u32 jump = g->jump < trend->growth / 8 ? g->jump : trend->growth / 8;
	__u32 left = mw_growth_sub_sat(mw_growth_level_headroom(g, level), jump);

	if (g->headroom == MW_GROWTH_NO_LIMIT)
		return 0;
	return trend->window && trend->score == 100 && trend->growth >= MW_GROWTH_MASS &&
	       trend->share >= MW_GROWTH_SHARE_MIN &&
	       mw_growth_eta(left, trend->slope_bps) <= MW_GROWTH_URGENT_S &&
	       mw_growth_nears_limit(g, trend->growth, left) && mw_growth_is_new_high(level, trend);
}

/* Is what was gained in use, as far as that is known? */
MW_INLINE int mw_growth_is_used(const struct mw_growth_touch *touch)
{
	return touch->gained >= MW_GROWTH_MASS &&
	       (__u64)touch->cold_high * 100 < (__u64)touch->gained * MW_GROWTH_USED_SHARE;
}

/*
 * Rule "untouched": what the process touches was followed for long while a notice held, the growth
 * is new, steady and goes on, and what was gained is cold.
 */
MW_INLINE int mw_growth_rule_untouched(const struct mw_growth *g,
				       const struct mw_growth_history *history,
				       const struct mw_growth_touch *touch)
{
	__u32 age = mw_growth_age_s(g), begin = g->base_s + (g->followed_min - 1U) * 60;

	if (!g->followed_min || age < begin + MW_GROWTH_COLD_S ||
	    age - g->rise_s > MW_GROWTH_COLD_PROGRESS_S || !mw_growth_trend_grows(history))
		return 0;
	return g->top > g->ceiling && mw_growth_is_cold(touch);
}

#endif /* _MW_GROWTH_RULES_H */
