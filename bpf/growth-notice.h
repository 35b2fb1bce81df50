/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The notice: this process grows, significantly. It comes early, and it is cheap to be
 * wrong: a start-up, a cache that fills and a daily wave get one too. It ends when the
 * growth does. A sawtooth gets one only at its first rise, because growth counts only
 * above the highest signal of all notices before.
 */
#ifndef _MW_GROWTH_NOTICE_H
#define _MW_GROWTH_NOTICE_H

#include "growth-forecast.h"

/*
 * The growth within MW_GROWTH_NOTICE_WINDOW_S that is significant: this many pages, and
 * this part of the signal. At 10 KB/s it takes 14 minutes, at 100 KB/s 84 seconds.
 */
#define MW_GROWTH_NOTICE_MIN	  (8 * MW_GROWTH_MIB)
#define MW_GROWTH_NOTICE_PART	  64U
#define MW_GROWTH_NOTICE_WINDOW_S 3600U

/* Trend score that is significant, with a growth of at least MW_GROWTH_MASS. */
#define MW_GROWTH_GROWS 70U

/* A notice ends after at least this many seconds without a new maximum. */
#define MW_GROWTH_SETTLE_S 60U

/* Seconds after which a notice is completed: half of the growth is a minute old by then. */
#define MW_GROWTH_TOUCH_S 150U

/* Returns 1 if the best trend alone is significant. @history may be NULL. */
MW_INLINE int mw_growth_trend_grows(const struct mw_growth_history *history)
{
	return history && history->best.score >= MW_GROWTH_GROWS &&
	       history->best.growth >= MW_GROWTH_MASS;
}

/* Follows the lowest signal from which growth is counted, which is at most an hour old. */
MW_INLINE void mw_growth_notice_rebase(struct mw_growth *g)
{
	if (g->signal < g->base)
		g->base = g->signal;
	if (mw_growth_age_s(g) - g->base_s <= MW_GROWTH_NOTICE_WINDOW_S)
		return;
	g->base = g->signal;
	g->base_s = mw_growth_age_s(g);
}

MW_INLINE int mw_growth_notice_is_due(const struct mw_growth *g,
				      const struct mw_growth_history *history)
{
	__u32 from = g->base > g->rise ? g->base : g->rise, least = from / MW_GROWTH_NOTICE_PART;

	if (least < MW_GROWTH_NOTICE_MIN)
		least = MW_GROWTH_NOTICE_MIN;
	return mw_growth_sub_sat(g->signal, from) >= least ||
	       (g->signal > g->rise && mw_growth_trend_grows(history));
}

/* Has growth ended, or was it given back? */
MW_INLINE int mw_growth_notice_is_over(const struct mw_growth *g,
				       const struct mw_growth_history *history)
{
	__u32 patience = (g->rise_s - g->base_s) / 4;

	if (patience < MW_GROWTH_SETTLE_S)
		patience = MW_GROWTH_SETTLE_S;
	if (mw_growth_trend_grows(history))
		return 0;
	return g->signal <= g->base || mw_growth_age_s(g) - g->rise_s > patience;
}

/* Whole minutes since an age, and 1; at most the largest number. */
MW_INLINE __u16 mw_growth_minutes_since(const struct mw_growth *g, __u32 age_s)
{
	__u32 minutes = (mw_growth_age_s(g) - age_s) / 60;

	return minutes < 0xfffe ? (__u16)(minutes + 1) : 0xffff;
}

/*
 * Completes a notice once it is known how much of the growth is cold, and enough of it is old
 * enough to tell. Returns the event, or 0.
 */
MW_INLINE __u32 mw_growth_notice_complete(struct mw_growth *g, const struct mw_growth_touch *touch)
{
	if (!touch->gained || g->flags & MW_GROWTH_F_TOUCH ||
	    mw_growth_age_s(g) - g->base_s < MW_GROWTH_TOUCH_S)
		return 0;
	g->flags |= MW_GROWTH_F_TOUCH;
	return MW_GROWTH_EVENT_TOUCH;
}

/* Raises, completes or ends the notice after a sample. Returns the event, or 0. */
MW_INLINE __u32 mw_growth_notice_update(struct mw_growth *g,
					const struct mw_growth_history *history,
					const struct mw_growth_touch *touch)
{
	if (!(g->flags & MW_GROWTH_F_NOTICE)) {
		mw_growth_notice_rebase(g);
		if (!mw_growth_notice_is_due(g, history))
			return 0;
		g->flags |= MW_GROWTH_F_NOTICE;
		g->base_s = g->rise_s = mw_growth_age_s(g);
		g->followed_min = 0;
		if (g->signal > g->rise)
			g->rise = g->signal;
		if (!g->notice_ns)
			g->notice_ns = g->last_ns;
		return MW_GROWTH_EVENT_NOTICE;
	}
	if (g->signal > g->rise) {
		g->rise = g->signal;
		g->rise_s = mw_growth_age_s(g);
	}
	if (touch->untouched_s && !g->followed_min)
		g->followed_min = mw_growth_minutes_since(g, g->base_s);
	if (!mw_growth_notice_is_over(g, history))
		return mw_growth_notice_complete(g, touch);
	g->flags &= (__u8) ~(MW_GROWTH_F_NOTICE | MW_GROWTH_F_TOUCH);
	g->base = g->signal;
	g->base_s = mw_growth_age_s(g);
	g->followed_min = 0;
	return MW_GROWTH_EVENT_SETTLE;
}

#endif /* _MW_GROWTH_NOTICE_H */
