/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * From scores and rules to what is said of a process: the alert that is raised and
 * cleared, the verdict, and the confidence.
 */
#ifndef _MW_GROWTH_VERDICT_H
#define _MW_GROWTH_VERDICT_H

#include "growth-notice.h"
#include "growth-rules.h"

/* The verdict is "insufficient" before a process was watched for this long. */
#define MW_GROWTH_WATCHED_NS (60 * MW_GROWTH_SECOND)

/* An alert holds at least this long after the last maximum, unless the growth is freed. */
#define MW_GROWTH_CLEAR_S 300U

/* The same for the rule "height", in hours: the load of a day comes back after a day. */
#define MW_GROWTH_CLEAR_HOURS 26U

/* Least growth of the address space, in pages, that sets MW_GROWTH_F_RESERVED. */
#define MW_GROWTH_RESERVED_MIN (16 * MW_GROWTH_MIB)

/*
 * Calibration: of the processes with this much evidence (0 to 10), the percentage that
 * leaked. selftests/eval/calibrate.py fits the table to the tuning part of the
 * evaluation corpora; no two of its first eleven entries are equal, so that the script
 * can tell the evidence from the confidence.
 */
MW_INLINE __u8 mw_growth_calibrated_confidence(__u32 evidence)
{
	/*
	 * A masked index is what every verifier can bound, so there are entries up to 15.
	 * Two more keep the table from being 16 bytes long: constants of that size go to a
	 * section that libbpf does not load.
	 */
	static const __u8 table[18] = { 3,  4,	5,  24, 41, 79, 92, 96, 97,
					98, 99, 99, 99, 99, 99, 99, 99, 99 };

	return table[evidence & 15];
}

/* Sets scores, verdict and confidence. @history may be NULL. */
MW_INLINE void mw_growth_judge(struct mw_growth *g, const struct mw_growth_history *history)
{
	__u32 evidence, trend = 0, share = 0, eta;
	__u64 slope = mw_growth_current_slope(g, history);

	if (history && history->best.growth >= MW_GROWTH_MIB) {
		trend = history->best.score;
		share = history->best.share;
	}
	/* An episode that keeps its pace is some evidence, but no window confirms it yet. */
	if (!trend && slope)
		trend = 40;
	eta = mw_growth_eta(mw_growth_peak_headroom(g, history), slope);
	g->score[MW_GROWTH_TREND] = (__u8)trend;
	g->score[MW_GROWTH_COMPOSITION] = (__u8)share;
	g->score[MW_GROWTH_THRESHOLD] = (__u8)(eta == MW_GROWTH_NEVER ? 0
								      : mw_growth_score_eta(eta));

	if (g->flags & MW_GROWTH_F_ALERT) {
		g->verdict = MW_GROWTH_LEAK;
		evidence = 8 + (trend >= 90) + (g->reason != MW_GROWTH_LIMIT);
	} else {
		evidence = trend * 5 / 100 + g->score[MW_GROWTH_THRESHOLD] * (trend >= 40) / 50U;
		if (g->flags & MW_GROWTH_F_NOTICE)
			g->verdict = MW_GROWTH_GROWING;
		else if (g->last_ns - g->first_ns < MW_GROWTH_WATCHED_NS)
			g->verdict = MW_GROWTH_INSUFFICIENT;
		else if (g->flags & MW_GROWTH_F_RESERVED)
			g->verdict = MW_GROWTH_GROWING;
		else
			g->verdict = MW_GROWTH_STABLE;
	}
	g->confidence = mw_growth_calibrated_confidence(evidence);
}

/*
 * Raises an alert for the rule @reason, about growth at @slope_bps that began at @from pages
 * and has @headroom pages left.
 */
MW_INLINE __u32 mw_growth_alert_raise(struct mw_growth *g, __u32 reason, __u64 slope_bps,
				      __u32 from, __u32 headroom)
{
	g->flags |= MW_GROWTH_F_ALERT;
	g->reason = (__u8)reason;
	g->alert_from = from;
	g->alert_top = g->signal;
	g->alert_s = g->progress_s = mw_growth_age_s(g);
	g->slope_bps = slope_bps;
	g->eta_s = mw_growth_eta(mw_growth_usable(headroom), slope_bps);
	if (!g->alert_ns)
		g->alert_ns = g->last_ns;
	return MW_GROWTH_EVENT_ALERT;
}

/* Raises an alert for a rule about the history. */
MW_INLINE __u32 mw_growth_alert_raise_by_history(struct mw_growth *g,
						 const struct mw_growth_history *history,
						 __u32 reason)
{
	const struct mw_growth_trend *fired = &history->fired;

	if (reason == MW_GROWTH_HEIGHT)
		return mw_growth_alert_raise(g, reason, mw_growth_days_slope(&history->days),
					     history->days.height,
					     mw_growth_days_headroom(g, history));
	return mw_growth_alert_raise(g, reason, fired->slope_bps,
				     mw_growth_sub_sat(g->signal, fired->growth),
				     mw_growth_peak_headroom(g, history));
}

/* Raises an alert for the rule "limit" about the episode. @history may be NULL. */
MW_INLINE __u32 mw_growth_alert_raise_by_episode(struct mw_growth *g,
						 const struct mw_growth_history *history)
{
	return mw_growth_alert_raise(g, MW_GROWTH_LIMIT, mw_growth_newest_slope(g, history),
				     mw_growth_newest_origin(g, history)->pages,
				     mw_growth_peak_headroom(g, history));
}

/* Raises an alert for the rule "untouched". */
MW_INLINE __u32 mw_growth_alert_raise_by_touch(struct mw_growth *g,
					       const struct mw_growth_history *history,
					       const struct mw_growth_touch *touch)
{
	return mw_growth_alert_raise(g, MW_GROWTH_UNTOUCHED, mw_growth_current_slope(g, history),
				     mw_growth_sub_sat(g->signal, touch->gained),
				     mw_growth_peak_headroom(g, history));
}

/*
 * Is what the alert is about given back? At night a load that has a daily wave is lower than at any
 * time of the day, so growth of days is given back when no hour of the last day was as high as
 * before. @history may be NULL.
 */
MW_INLINE int mw_growth_is_given_back(const struct mw_growth *g,
				      const struct mw_growth_history *history)
{
	if (g->signal > g->alert_from)
		return 0;
	return g->reason != MW_GROWTH_HEIGHT ||
	       (history &&
		mw_growth_days_highest(&history->days, MW_GROWTH_CLEAR_HOURS) <= g->alert_from);
}

/*
 * Updates a raised alert. It is cleared when the growth is given back, or when there was no
 * new maximum for more than MW_GROWTH_CLEAR_S (MW_GROWTH_CLEAR_HOURS) and for more than a
 * quarter of the time from the alert to the last maximum. @history may be NULL.
 */
MW_INLINE __u32 mw_growth_alert_update(struct mw_growth *g, const struct mw_growth_history *history)
{
	__u32 patience = (g->progress_s - g->alert_s) / 4, least = MW_GROWTH_CLEAR_S;

	if (g->signal > g->alert_top) {
		g->alert_top = g->signal;
		g->progress_s = mw_growth_age_s(g);
		return 0;
	}
	if (g->reason == MW_GROWTH_HEIGHT)
		least = MW_GROWTH_CLEAR_HOURS * MW_GROWTH_HOUR_S;
	if (patience < least)
		patience = least;
	if (!mw_growth_is_given_back(g, history) && mw_growth_age_s(g) - g->progress_s <= patience)
		return 0;
	g->flags &= (__u8)~MW_GROWTH_F_ALERT;
	g->reason = MW_GROWTH_NONE;
	return MW_GROWTH_EVENT_CLEAR;
}

/*
 * Returns 1 if the address space grows steadily and has gained more than four times what
 * the signal has.
 */
MW_INLINE int mw_growth_is_reserving(const struct mw_growth *g,
				     const struct mw_growth_history *history)
{
	const struct mw_growth_level *level = &history->level[1];
	__u32 i, value, after = g->vsz, rose = 0, first;

	for (i = 0; i < MW_GROWTH_BINS / 4; i++) {
		if (level->bin / 4 < i)
			break;
		value = level->vsz[(level->bin / 4 - i) & (MW_GROWTH_BINS / 4 - 1)];
		if (value > after)
			return 0;
		rose += value < after;
		after = value;
	}
	first = after;
	return rose >= 4 && g->vsz - first >= MW_GROWTH_RESERVED_MIN &&
	       (g->vsz - first) / 4 >= history->trend[1].growth;
}

#endif /* _MW_GROWTH_VERDICT_H */
