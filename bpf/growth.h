/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth detectors: one file for BPF and for the host, exact in integers,
 * so that a trace gives the same verdict in the kernel and in a replay. No
 * helper is called here and no kernel type is used: numbers go in and come out.
 *
 * UNITS. "Pages" are 4 KiB whatever the machine calls a page. Time is ns of any
 * monotonic clock.
 *
 * THE SIGNAL of a leak is what nobody else can give back: anonymous + swapped
 * + shared memory. So a leak that is being swapped out does not look cured, and
 * a file cache does not look like a leak.
 *
 * STATE. struct mw_growth for every process; struct mw_growth_history as well for
 * one whose signal has risen by MW_GROWTH_HISTORY_SIGNAL pages, or the address space by
 * MW_GROWTH_HISTORY_VSZ. The history one keeps, at
 * four bin widths from 20 s to 85 min, the lowest signal of the last 32 bins:
 * minima, because what a garbage collector can give back is no leak.
 *
 * DETECTORS. Each has a score of 0 to 100:
 *   trend        the lower envelope of a window of bins (each bin's minimum with
 *                all later ones) rises along a line: regression, R squared, equal
 *                growth in all thirds, no step that makes up most of it
 *   composition  what grew: the signal against mapped files
 *   threshold    the time until the nearest limit at the present slope
 *
 * BPF. The verifier follows every path through what a program calls, unless it
 * calls a global function, and those take numbers only. So what loops over loops
 * is called by way of MW_GROWTH_CALL(name), which growth.bpf.c defines as a
 * global function that works on a state in a map.
 *
 * ALERTS. There are three ways to one, see mw_growth_rule_bin: the limit is near
 * and gets nearer steadily; growth was steady for 25 minutes (21 if the limit is
 * less than an hour away); growth is slow but went on for more than a day, each
 * hour above the same hour before.
 */
#ifndef _MW_GROWTH_H
#define _MW_GROWTH_H

#include "growth-trend.h"

/*
 * The rules, in one place. Shares are in percent.
 *
 * A process that will hit its limit within URGENT_S is told of early enough for
 * somebody to act; to tell earlier would be to tell of every start-up. CONSUMED
 * says how much of the headroom that was left at the onset is gone by then: below
 * one half, so that at least half the time is left. A process that has grown
 * since it started has to have used more: starting is what starting looks like.
 */
#define MW_GROWTH_URGENT_S	  150U
#define MW_GROWTH_CONSUMED	  42U
#define MW_GROWTH_CONSUMED_START  70U
#define MW_GROWTH_START_NS	  (60 * MW_GROWTH_SECOND) /* longer is no start */
#define MW_GROWTH_YOUNG_NS	  (10 * MW_GROWTH_SECOND)
#define MW_GROWTH_SOON_S	  3600U /* a limit this near makes the shorter window enough */
#define MW_GROWTH_STALL_NS	  (15 * MW_GROWTH_SECOND)
#define MW_GROWTH_EPISODE_MIN	  64U /* pages; a slower start is no start */
#define MW_GROWTH_EPISODE_STEP_NS (5 * MW_GROWTH_SECOND)
#define MW_GROWTH_CLEAR_NS	  (300 * MW_GROWTH_SECOND)
#define MW_GROWTH_SETTLE_NS	  (60 * MW_GROWTH_SECOND) /* less was seen: insufficient */
#define MW_GROWTH_STEADY_BINS	  19U	/* of 80 s; caches fill in 15 minutes and more */
#define MW_GROWTH_SOON_BINS	  16U	/* thirds of 5: no 15 minutes fill them */
#define MW_GROWTH_SLOW_BPS	  8192U /* below: only the rule of a day */
#define MW_GROWTH_MASS		  (4 * MW_GROWTH_MIB) /* least growth worth a word */

enum mw_growth_verdict {
	MW_GROWTH_INSUFFICIENT = 0,
	MW_GROWTH_STABLE = 1,
	MW_GROWTH_GROWING = 2,
	MW_GROWTH_LEAK = 3,
};

/* Why there is an alert. */
enum mw_growth_reason {
	MW_GROWTH_NONE = 0,
	MW_GROWTH_LIMIT = 1,  /* steady, and the limit is near */
	MW_GROWTH_STEADY = 2, /* steady for a long time */
	MW_GROWTH_SLOW = 3,   /* slow, for more than a day */
};

/* What one call of mw_growth_feed() changed. */
#define MW_GROWTH_EVENT_ALERT (1U << 0)
#define MW_GROWTH_EVENT_CLEAR (1U << 1)

/* Of struct mw_growth. */
#define MW_GROWTH_F_ALERT    (1U << 0)
#define MW_GROWTH_F_HISTORY  (1U << 1) /* has grown: wants the history state */
#define MW_GROWTH_F_RESERVED (1U << 2) /* address space grows, memory does not */

enum mw_growth_detector {
	MW_GROWTH_TREND = 0,
	MW_GROWTH_COMPOSITION = 1,
	MW_GROWTH_THRESHOLD = 2,
	MW_GROWTH_DETECTORS = 3,
};

/**
 * struct mw_growth_sample - one reading of one process
 * @time_ns: never before the sample before
 * @file: mapped file pages
 * @anon: anonymous pages
 * @swap: pages in swap
 * @shmem: pages of shared memory
 * @vsz: pages of address space; more than fit count as the most that do
 * @headroom: pages until the nearest limit of memory, or MW_GROWTH_NO_LIMIT
 * @address_headroom: the same for RLIMIT_AS and RLIMIT_DATA
 */
struct mw_growth_sample {
	__u64 time_ns;
	__u32 file;
	__u32 anon;
	__u32 swap;
	__u32 shmem;
	__u32 vsz;
	__u32 headroom;
	__u32 address_headroom;
	__u32 reserved;
};

/* A place on the way up; @ms since the onset. */
struct mw_growth_point {
	__u32 ms;
	__u32 pages;
};

/**
 * struct mw_growth - what is kept of every process
 * @first_ns: first sample
 * @last_ns: last sample
 * @onset_ns: since when it grows without a rest
 * @top_ns: when it last reached a new height of this streak
 * @alert_ns: first alert; 0: none
 * @progress_ns: during an alert, when the signal last rose
 * @slope_bps: at the first alert, bytes a second
 * @signal: last anonymous + swapped + shared pages
 * @file: last mapped file pages
 * @vsz: last address space
 * @vsz_floor: lowest address space since the first minute, when libraries are mapped
 * @headroom: last headroom
 * @address_headroom: last address headroom
 * @floor: lowest signal ever
 * @top: highest signal of the streak
 * @alert_from: signal where the growth began that the alert is about
 * @alert_top: highest signal since the alert
 * @eta_s: at the first alert, seconds to the limit
 * @gap_ms: least time between two points
 * @point: the streak, thinned out as it gets longer: the first is its onset
 * @points: how many
 * @flags: MW_GROWTH_F_*
 * @reason: of the alert, &enum mw_growth_reason
 * @verdict: &enum mw_growth_verdict
 * @confidence: 0 to 100, that this is a leak
 * @score: of each detector, 0 to 100
 * @origin: the first point from which the streak has not slowed down
 */
struct mw_growth {
	__u64 first_ns;
	__u64 last_ns;
	__u64 onset_ns;
	__u64 top_ns;
	__u64 alert_ns;
	__u64 progress_ns;
	__u64 slope_bps;
	__u32 signal;
	__u32 file;
	__u32 vsz;
	__u32 vsz_floor;
	__u32 headroom;
	__u32 address_headroom;
	__u32 floor;
	__u32 top;
	__u32 alert_from;
	__u32 alert_top;
	__u32 eta_s;
	__u32 gap_ms;
	struct mw_growth_point point[MW_GROWTH_POINTS];
	__u8 points;
	__u8 flags;
	__u8 reason;
	__u8 verdict;
	__u8 confidence;
	__u8 score[MW_GROWTH_DETECTORS];
	__u8 origin;
	__u8 reserved[3];
};

MW_INLINE void mw_growth_history_init(struct mw_growth_history *history, const struct mw_growth *g)
{
	__u32 i;

	history->start_ns = g->last_ns;
	mw_growth_trend_clear(&history->best);
	mw_growth_trend_clear(&history->attempt);
	mw_growth_trend_clear(&history->fired);
	for (i = 0; i < MW_GROWTH_LEVELS; i++) {
		history->level[i].bin = 0;
		history->level[i].low = g->signal;
		history->level[i].high = history->level[i].peak = g->signal;
		history->level[i].file[0] = g->file;
		history->level[i].vsz[0] = g->vsz;
		mw_growth_trend_clear(&history->trend[i]);
	}
}

/* ---------------------------------------------------------------- streak */

MW_INLINE void mw_growth_episode_start(struct mw_growth *g, __u32 signal, __u64 now)
{
	g->onset_ns = now;
	g->top_ns = now;
	g->top = signal;
	g->gap_ms = 0;
	g->point[0].ms = 0;
	g->point[0].pages = signal;
	g->points = 1;
	g->origin = 0;
}

/* Every second point goes, and from now on they are twice as far apart. */
MW_INLINE void mw_growth_episode_thin(struct mw_growth *g, __u32 ms)
{
	__u32 i;

	for (i = 1; i < MW_GROWTH_POINTS / 2; i++)
		g->point[i] = g->point[2 * i];
	g->points = MW_GROWTH_POINTS / 2;
	g->gap_ms = ms / (MW_GROWTH_POINTS - 1) * 2;
}

/* The later half of the streak from point @from on; false if it is too short or slows down. */
MW_INLINE int mw_growth_episode_pace(const struct mw_growth *g, __u32 from, __u64 *pages, __u64 *ms)
{
	/* The masks change nothing; they are for verifiers that forget a comparison. */
	__u32 middle = (from + g->points) / 2U & (MW_GROWTH_POINTS - 1);
	__u32 last = (g->points - 1U) & (MW_GROWTH_POINTS - 1), p0, p1, p2, t1, t2;

	if (g->points < from + 4)
		return 0;
	/* After the comparison: at that of a sum, 6.12 forgets what a part of it can be. */
	MW_GROWTH_OPAQUE(from);
	from &= MW_GROWTH_POINTS - 1;
	p0 = g->point[from].pages;
	p1 = g->point[middle].pages;
	p2 = g->point[last].pages;
	t1 = g->point[middle].ms - g->point[from].ms;
	t2 = g->point[last].ms - g->point[from].ms;
	if (p1 < p0 || p2 <= p1 || t2 <= t1 || !t1)
		return 0;
	*pages = p2 - p1;
	*ms = t2 - t1;
	/* 27 bits of pages and 32 of time: the products fit. */
	if (p2 - p0 > MW_GROWTH_MAX_D)
		return 1;
	return *pages * t1 * 10 >= (__u64)(p1 - p0) * *ms * 8;
}

/*
 * A process that leaks when it has started grew faster while it started, so the
 * streak is judged from the first point on from which it does not slow down. That
 * cannot make a leak of what only settles: of an exponential approach no part
 * keeps its pace while it covers 42 % of what is left.
 */
MW_INLINE void mw_growth_episode_origin(struct mw_growth *g)
{
	__u64 pages, ms;
	__u32 i;

	for (i = 0; i < MW_GROWTH_POINTS - 4; i++) {
		if (mw_growth_episode_pace(g, i, &pages, &ms))
			break;
	}
	g->origin = (__u8)(i < g->points ? i : 0);
}

/*
 * A streak is growth without a rest: it ends when an eighth of it is given back
 * or no new height is reached for a quarter of its time. Growth too slow to be
 * told from wobble does not begin one.
 */
MW_INLINE void mw_growth_episode_update(struct mw_growth *g, __u32 signal, __u64 now)
{
	__u32 grown = mw_growth_sub_sat(g->top, g->point[0].pages), fallen, at;
	__u64 stall = (g->top_ns - g->onset_ns) / 4, ms = (now - g->onset_ns) / 1000000;

	if (stall < MW_GROWTH_STALL_NS)
		stall = MW_GROWTH_STALL_NS;
	fallen = mw_growth_sub_sat(g->top, signal);
	if (fallen > MW_GROWTH_MIB && fallen > grown / 8) {
		mw_growth_episode_start(g, signal, now);
		return;
	}
	if (grown < MW_GROWTH_EPISODE_MIN)
		stall = MW_GROWTH_EPISODE_STEP_NS;
	if (signal <= g->top) {
		if (now - g->top_ns > stall)
			mw_growth_episode_start(g, signal, now);
		return;
	}
	if (signal - g->point[0].pages < MW_GROWTH_EPISODE_MIN) {
		if (now - g->onset_ns > MW_GROWTH_EPISODE_STEP_NS)
			mw_growth_episode_start(g, signal, now);
		return;
	}
	g->top = signal;
	g->top_ns = now;
	at = (g->points - 1U) & (MW_GROWTH_POINTS - 1);
	if (ms > ~0U || ms - g->point[at].ms < g->gap_ms)
		return;
	if (g->points == MW_GROWTH_POINTS)
		mw_growth_episode_thin(g, (__u32)ms);
	at = g->points & (MW_GROWTH_POINTS - 1);
	g->point[at].ms = (__u32)ms;
	g->point[at].pages = signal;
	g->points = (__u8)(at + 1);
	mw_growth_episode_origin(g);
}

/* Where the streak began to grow as it does. */
MW_INLINE const struct mw_growth_point *mw_growth_episode_from(const struct mw_growth *g)
{
	return &g->point[g->origin & (MW_GROWTH_POINTS - 1)];
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

/* Bytes a second of the present streak, 0 if it is none. */
MW_INLINE __u64 mw_growth_episode_slope(const struct mw_growth *g)
{
	__u64 pages = 0, ms = 0;

	if (!mw_growth_episode_pace(g, g->origin, &pages, &ms) || !ms)
		return 0;
	return (pages << MW_GROWTH_PAGE_SHIFT) * 1000 / ms;
}

/* --------------------------------------------------------------- verdict */

/*
 * Is the streak something new, and the best window about the time before? It has
 * then gained more than that window, and half of it above all of the bin before: the
 * tooth of a saw rises from where it has been.
 */
MW_INLINE int mw_growth_is_new_growth(const struct mw_growth *g,
				      const struct mw_growth_history *history)
{
	const struct mw_growth_level *level =
		&history->level[history->best.level & (MW_GROWTH_LEVELS - 1)];
	__u32 grown = mw_growth_sub_sat(g->top, mw_growth_episode_from(g)->pages);

	return grown >= MW_GROWTH_MASS && grown > history->best.growth &&
	       mw_growth_sub_sat(g->top, level->peak) > grown / 2 && mw_growth_episode_slope(g);
}

/* What to extrapolate: the best window, else the streak, which is NULL here. */
MW_INLINE const struct mw_growth_trend *
mw_growth_pick_trend(const struct mw_growth *g, const struct mw_growth_history *history)
{
	if (history && history->best.score >= 50)
		return mw_growth_is_new_growth(g, history) ? 0 : &history->best;
	if (!history || mw_growth_episode_slope(g))
		return 0;
	/* Steps, or what follows a warm-up: no proof, but the best guess there is. */
	if (history->trend[1].r2_permille >= MW_GROWTH_R2_BAD)
		return &history->trend[1];
	return history->trend[0].r2_permille >= MW_GROWTH_R2_BAD ? &history->trend[0] : 0;
}

MW_INLINE __u64 mw_growth_current_slope(const struct mw_growth *g,
					const struct mw_growth_history *history)
{
	const struct mw_growth_trend *trend = mw_growth_pick_trend(g, history);

	return trend ? trend->slope_bps : mw_growth_episode_slope(g);
}

/*
 * Pages that the envelope may still rise: the peaks above it meet the limit first.
 * The last two bins of what is extrapolated say how high they are.
 */
MW_INLINE __u32 mw_growth_peak_headroom(const struct mw_growth *g,
					const struct mw_growth_history *history)
{
	const struct mw_growth_trend *trend = mw_growth_pick_trend(g, history);
	const struct mw_growth_level *level;
	__u32 high = g->top;

	if (g->headroom == MW_GROWTH_NO_LIMIT)
		return g->headroom;
	if (trend) {
		level = &history->level[trend->level & (MW_GROWTH_LEVELS - 1)];
		high = level->peak > level->high ? level->peak : level->high;
	}
	return mw_growth_sub_sat(g->headroom, mw_growth_sub_sat(high, g->signal));
}

/* Log scale: a limit within URGENT_S is 100, one a day and more away 0. */
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

/*
 * Rule 1, on any sample: the limit is near, a good part of the way there is
 * behind, and the pace does not slacken.
 */
MW_INLINE int mw_growth_rule_limit(const struct mw_growth *g)
{
	__u32 grown = mw_growth_sub_sat(g->top, mw_growth_episode_from(g)->pages);
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
 * Is it above all there was before @window by half of what was gained, and above the
 * first third of it by a quarter? A wave, and noise that has a memory, come back to where
 * they were. The envelope does not show that: after a dip it climbs from there.
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

/* Was every bin of the last hours above that of the same hour a day before? */
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
	return pairs >= 6;
}

/* Share of the signal in what the window gained. */
MW_INLINE __u32 mw_growth_signal_share(const struct mw_growth *g,
				       const struct mw_growth_level *level,
				       const struct mw_growth_trend *trend)
{
	__u32 file = mw_growth_sub_sat(
		g->file, mw_growth_level_past(level->file, level->bin, trend->window));

	return mw_growth_percent(trend->growth, mw_growth_add_sat(trend->growth, file));
}

/* Rules 2 and 3, when a bin of level @i was closed. */
MW_INLINE __u32 mw_growth_rule_bin(const struct mw_growth *g,
				   const struct mw_growth_history *history, __u32 i)
{
	const struct mw_growth_trend *trend = &history->trend[i];
	const struct mw_growth_level *level = &history->level[i];
	__u32 eta, window;

	if (!trend->window || trend->growth < MW_GROWTH_MASS || trend->share < 50)
		return MW_GROWTH_NONE;
	if (i == 3)
		return trend->window >= 24 && trend->r2_permille >= 700 &&
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

/* 32, 19, 16 and 8 bins; computed, because a table would be 16 bytes long. */
MW_INLINE __u32 mw_growth_window_bins(__u32 k)
{
	return k == 0	? MW_GROWTH_BINS
	       : k == 1 ? MW_GROWTH_STEADY_BINS
	       : k == 2 ? MW_GROWTH_SOON_BINS
			: 8;
}

/* The windows of a level, the longest first that has the best score. */
MW_INLINE void mw_growth_fit_level(struct mw_growth_history *history, __u32 i)
{
	struct mw_growth_trend *best = &history->trend[i];
	__u32 k, found = 0;
	__u8 slowing = 0;

	best->window = 0;
	best->score = 0;
	for (k = 0; k < 4; k++) {
		if (!MW_GROWTH_CALL(fit_window)(history, i, mw_growth_window_bins(k)))
			continue;
		if (!found++)
			slowing = history->attempt.slowing;
		if (!best->window || history->attempt.score > best->score)
			*best = history->attempt;
	}
	best->slowing = slowing;
}

/*
 * Calibration: which share of those with this much evidence (0 to 10) leak, in
 * percent. Fitted by selftests/eval/calibrate.py to the tuning half of the corpora;
 * no two entries are the same, so that it can read the evidence off.
 */
MW_INLINE __u8 mw_growth_calibrated_confidence(__u32 evidence)
{
	/*
	 * A mask is what every verifier understands, so there are entries up to 15.
	 * Two more keep it from being 16 bytes long: constants of that size go to
	 * a section that libbpf does not load.
	 */
	static const __u8 table[18] = { 3,  4,	5,  24, 36, 64, 81, 96, 97,
					98, 99, 99, 99, 99, 99, 99, 99, 99 };

	return table[evidence & 15];
}

/* From the scores to one word and one number. */
MW_INLINE void mw_growth_judge(struct mw_growth *g, const struct mw_growth_history *history)
{
	__u32 evidence, trend = 0, share = 0, eta;
	__u64 slope = mw_growth_current_slope(g, history);

	if (history && history->best.growth >= MW_GROWTH_MIB) {
		trend = history->best.score;
		share = history->best.share;
	}
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
		if (g->last_ns - g->first_ns < MW_GROWTH_SETTLE_NS)
			g->verdict = MW_GROWTH_INSUFFICIENT;
		else if (trend >= MW_GROWTH_GROWS || g->flags & MW_GROWTH_F_RESERVED ||
			 (slope && g->top - mw_growth_episode_from(g)->pages >= MW_GROWTH_MASS))
			g->verdict = MW_GROWTH_GROWING;
		else
			g->verdict = MW_GROWTH_STABLE;
	}
	g->confidence = mw_growth_calibrated_confidence(evidence);
}

/* @trend is NULL if the streak is what the alert is about; @headroom as mw_growth_peak_headroom().
 */
MW_INLINE __u32 mw_growth_alert_raise(struct mw_growth *g, __u32 reason,
				      const struct mw_growth_trend *trend, __u32 headroom)
{
	__u64 slope = trend ? trend->slope_bps : mw_growth_episode_slope(g);
	__u32 from = trend ? mw_growth_sub_sat(g->signal, trend->growth)
			   : mw_growth_episode_from(g)->pages;

	g->flags |= MW_GROWTH_F_ALERT;
	g->reason = (__u8)reason;
	g->alert_from = from;
	g->alert_top = g->signal;
	g->progress_ns = g->last_ns;
	if (!g->alert_ns) {
		g->alert_ns = g->last_ns;
		g->slope_bps = slope;
		g->eta_s = mw_growth_eta(headroom, slope);
	}
	return MW_GROWTH_EVENT_ALERT;
}

/* An alert ends when the growth is given back, or rests for a quarter of its time. */
MW_INLINE __u32 mw_growth_alert_follow(struct mw_growth *g)
{
	__u64 patience = (g->progress_ns - g->alert_ns) / 4;

	if (g->signal > g->alert_top) {
		g->alert_top = g->signal;
		g->progress_ns = g->last_ns;
		return 0;
	}
	if (patience < MW_GROWTH_CLEAR_NS)
		patience = MW_GROWTH_CLEAR_NS;
	if (g->signal > g->alert_from && g->last_ns - g->progress_ns <= patience)
		return 0;
	g->flags &= (__u8)~MW_GROWTH_F_ALERT;
	g->reason = MW_GROWTH_NONE;
	return MW_GROWTH_EVENT_CLEAR;
}

/* Does the address space grow, steadily and without memory behind it? */
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
	return rose >= 4 && g->vsz - first >= 16 * MW_GROWTH_MIB &&
	       (g->vsz - first) / 4 >= history->trend[1].growth;
}

/* ------------------------------------------------------------- interface */

/* The first sample of a process, or the first after it became another program. */
MW_INLINE void mw_growth_init(struct mw_growth *g, __u64 now, __u32 signal)
{
	g->first_ns = g->last_ns = now;
	g->alert_ns = g->progress_ns = g->slope_bps = 0;
	g->signal = g->floor = signal;
	g->file = g->vsz = g->vsz_floor = 0;
	g->headroom = g->address_headroom = MW_GROWTH_NO_LIMIT;
	g->alert_from = g->alert_top = 0;
	g->eta_s = MW_GROWTH_NEVER;
	g->flags = 0;
	g->reason = MW_GROWTH_NONE;
	g->verdict = MW_GROWTH_INSUFFICIENT;
	g->confidence = mw_growth_calibrated_confidence(0);
	g->score[0] = g->score[1] = g->score[2] = 0;
	g->reserved[0] = g->reserved[1] = g->reserved[2] = 0;
	mw_growth_episode_start(g, signal, now);
}

MW_INLINE __u32 mw_growth_signal(const struct mw_growth_sample *sample)
{
	return mw_growth_add_sat(sample->anon, mw_growth_add_sat(sample->swap, sample->shmem));
}

/* One sample into one level; the rule that a closed bin made true. */
MW_INLINE __u32 mw_growth_update_level(const struct mw_growth *g, struct mw_growth_history *history,
				       __u32 i)
{
	__u32 bin = (__u32)((g->last_ns - history->start_ns) / MW_GROWTH_BIN_NS);

	if (!mw_growth_level_add(&history->level[i], bin >> MW_GROWTH_SHIFT(i), g->file, g->vsz,
				 g->signal))
		return MW_GROWTH_NONE;
	MW_GROWTH_CALL(fit_level)(history, i);
	history->trend[i].share = (__u8)mw_growth_signal_share(g, &history->level[i],
							       &history->trend[i]);
	return mw_growth_rule_bin(g, history, i);
}

/* One sample into all levels; the first rule that came true. */
MW_INLINE __u32 mw_growth_history_update(struct mw_growth *g, struct mw_growth_history *history)
{
	__u32 found = MW_GROWTH_NONE, i, reason;

	mw_growth_trend_clear(&history->best);
	for (i = 0; i < MW_GROWTH_LEVELS; i++) {
		reason = MW_GROWTH_CALL(update_level)(g, history, i);
		if (reason && !found) {
			found = reason;
			history->fired = history->trend[i];
		}
	}
	for (i = 0; i < MW_GROWTH_LEVELS; i++) {
		if (history->trend[i].window && history->trend[i].score >= history->best.score &&
		    history->trend[i].growth >= MW_GROWTH_MIB)
			history->best = history->trend[i];
	}
	return found;
}

/*
 * One sample. @history is NULL for a process without history state; when
 * MW_GROWTH_F_HISTORY is set afterwards, the caller should make one with
 * mw_growth_history_init(). Returns MW_GROWTH_EVENT_*.
 */
MW_INLINE __u32 mw_growth_feed(struct mw_growth *g, struct mw_growth_history *history,
			       const struct mw_growth_sample *sample)
{
	__u32 signal = mw_growth_signal(sample), reason = MW_GROWTH_NONE, event = 0;
	const struct mw_growth_trend *by = 0;

	g->last_ns = sample->time_ns;
	g->signal = signal;
	g->file = sample->file;
	g->vsz = sample->vsz;
	g->headroom = sample->headroom;
	g->address_headroom = sample->address_headroom;
	if (signal < g->floor)
		g->floor = signal;
	if (g->last_ns - g->first_ns < MW_GROWTH_START_NS || g->vsz < g->vsz_floor)
		g->vsz_floor = g->vsz;
	if (signal - g->floor >= MW_GROWTH_HISTORY_SIGNAL ||
	    g->vsz - g->vsz_floor >= MW_GROWTH_HISTORY_VSZ)
		g->flags |= MW_GROWTH_F_HISTORY;
	mw_growth_episode_update(g, signal, sample->time_ns);
	if (history) {
		reason = mw_growth_history_update(g, history);
		g->flags &= (__u8)~MW_GROWTH_F_RESERVED;
		if (mw_growth_is_reserving(g, history))
			g->flags |= MW_GROWTH_F_RESERVED;
	}
	if (reason)
		by = &history->fired;
	else if (mw_growth_rule_limit(g))
		reason = MW_GROWTH_LIMIT;
	if (g->flags & MW_GROWTH_F_ALERT)
		event = mw_growth_alert_follow(g);
	else if (reason)
		event = mw_growth_alert_raise(g, reason, by, mw_growth_peak_headroom(g, history));
	MW_GROWTH_CALL(judge)(g, history);
	return event;
}

#endif /* _MW_GROWTH_H */
