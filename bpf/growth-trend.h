/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The memory of the growth detectors, and the line through it: bins of several
 * widths, windows of them, regression on the lower envelope. What follows from a
 * trend is not decided here, but in growth.h.
 */
#ifndef _MW_GROWTH_TREND_H
#define _MW_GROWTH_TREND_H

#include "growth-math.h"

#define MW_GROWTH_PAGE_SHIFT 12
#define MW_GROWTH_MIB	     (1U << (20 - MW_GROWTH_PAGE_SHIFT))
#define MW_GROWTH_NO_LIMIT   (~0U) /* a headroom without end */
#define MW_GROWTH_MISSING    (~0U) /* a bin without a sample */
#define MW_GROWTH_NEVER	     (~0U) /* seconds */
#define MW_GROWTH_SECOND     1000000000ULL

#define MW_GROWTH_BINS	     32U		     /* of a level; a power of two */
#define MW_GROWTH_LEVELS     4U			     /* a power of two */
#define MW_GROWTH_BIN_NS     (20 * MW_GROWTH_SECOND) /* of level 0 */
/* Of the others: 80 s, 320 s, 5120 s. */
#define MW_GROWTH_SHIFT(level)	 (2 * ((level) + (level) / 3))
#define MW_GROWTH_POINTS	 8U
#define MW_GROWTH_HISTORY_SIGNAL (MW_GROWTH_MIB / 2)
#define MW_GROWTH_HISTORY_VSZ	 (64 * MW_GROWTH_MIB)
#define MW_GROWTH_SEASON	 17U		  /* bins of level 3 that make a day (24.2 h) */
#define MW_GROWTH_MAX_D		 ((1U << 26) - 1) /* 256 GiB: more growth in a window counts as this */

/* Tests of a window: score 100 at "good", 0 at "bad", in between by the rule of three. */
#define MW_GROWTH_R2_GOOD     900U /* permille */
#define MW_GROWTH_R2_BAD      500U
#define MW_GROWTH_LAST_GOOD   85U /* last third against each of the others */
#define MW_GROWTH_LAST_BAD    20U
#define MW_GROWTH_FIRST_GOOD  70U /* first third against the middle one */
#define MW_GROWTH_FIRST_BAD   10U
#define MW_GROWTH_SLOWING     75U /* less than this of an earlier third: growth dies down */
#define MW_GROWTH_STEP_GOOD   40U /* largest step against the whole */
#define MW_GROWTH_STEP_BAD    70U
#define MW_GROWTH_RISING_GOOD 25U /* bins that rose */
#define MW_GROWTH_RISING_BAD  8U
#define MW_GROWTH_GROWS	      70U /* score that is worth the word "growing" */
#define MW_GROWTH_T2_GOOD     25U /* t squared of the slope */
#define MW_GROWTH_T2_BAD      4U

/**
 * struct mw_growth_level - bins of one width
 * @bin: index of the bin that is being filled, counted from @start_ns
 * @low: lowest signal in it
 * @high: highest signal in it
 * @peak: highest signal in the one before
 * @ring: lowest signal of the bins before
 * @file: mapped file pages at the end of every fourth bin
 * @vsz: address space at the same moments
 */
struct mw_growth_level {
	__u32 bin;
	__u32 low;
	__u32 high;
	__u32 peak;
	__u32 ring[MW_GROWTH_BINS];
	__u32 file[MW_GROWTH_BINS / 4];
	__u32 vsz[MW_GROWTH_BINS / 4];
};

/**
 * struct mw_growth_trend - what a window of one level says
 * @slope_bps: bytes a second, rounded down
 * @growth: pages from the start of the window to its end
 * @r2_permille: R squared of the line through the envelope
 * @score: all tests of the window; 100: all passed
 * @window: bins; 0: nothing to say
 * @slowing: over the longest window of the level, growth is dying down
 * @level: whose bins they are
 * @share: of the signal in what was gained, mapped files being the rest, percent
 */
struct mw_growth_trend {
	__u64 slope_bps;
	__u32 growth;
	__u16 r2_permille;
	__u8 score;
	__u8 window;
	__u8 slowing;
	__u8 level;
	__u8 share;
	__u8 reserved[5];
};

/* Sums over a window; x and y are counted back from its newest bin. */
struct mw_growth_sums {
	__u64 n, x, y, xx, xy, yy;
	__u64 rising; /* bins above the one before */
	__u32 depth;  /* of the oldest bin below the newest */
	__u32 step;   /* largest step of the envelope */
	__u32 third;  /* depth where the last third begins */
	__u32 two;    /* where the last two thirds begin */
	__u32 all;    /* where all three begin */
};

/**
 * struct mw_growth_history - what is kept of a process that grows
 * @start_ns: where the bins are counted from
 * @best: the trend with the best score
 * @attempt: of the window that was looked at last
 * @fired: by which a rule came true last
 * @sums: of the window that is being looked at; here, because the stack of a BPF
 *	program has 512 bytes for everything that is called
 */
struct mw_growth_history {
	__u64 start_ns;
	struct mw_growth_trend best;
	struct mw_growth_trend attempt;
	struct mw_growth_trend fired;
	struct mw_growth_sums sums;
	struct mw_growth_level level[MW_GROWTH_LEVELS];
	struct mw_growth_trend trend[MW_GROWTH_LEVELS];
};

/* ----------------------------------------------------------------- windows */

/*
 * The envelope of the last @window bins. Going back from the newest bin, the
 * lowest of those passed is the envelope, so its depth below the newest only
 * grows and no second pass is needed to know where it starts.
 */
MW_INLINE int mw_growth_sum_window(const struct mw_growth_level *level, __u32 window,
				   struct mw_growth_sums *s)
{
	__u32 newest = level->ring[(level->bin - 1) & (MW_GROWTH_BINS - 1)], low = newest;
	__u32 mark = (window - 1) / 3, depth, before = 0, step, i, value;
	__u64 there;

	s->n = s->x = s->y = s->xx = s->xy = s->yy = 0;
	s->depth = s->step = s->rising = s->third = s->two = s->all = 0;
	if (newest == MW_GROWTH_MISSING)
		return 0;
	for (i = 0; i < window && i < MW_GROWTH_BINS; i++) {
		value = level->ring[(level->bin - 1 - i) & (MW_GROWTH_BINS - 1)];
		/* 1 if there is a sample. No branch in here: the verifier then has one path. */
		there = mw_growth_select(value, MW_GROWTH_MISSING - 1, 1, 0);
		MW_GROWTH_OPAQUE(there);
		low = mw_growth_select(value, low, value, low);
		depth = newest - low;
		depth = mw_growth_select(depth, MW_GROWTH_MAX_D, depth, MW_GROWTH_MAX_D);
		step = depth - before;
		before = depth;
		s->step = mw_growth_select(step, s->step, s->step, step);
		s->rising += mw_growth_select(1, step, 1, 0);
		s->n += there;
		s->x += i * there;
		s->y += depth * there;
		s->xx += i * i * there;
		s->xy += (__u64)i * depth * there;
		s->yy += (__u64)depth * depth * there;
		s->third = mw_growth_select(i, mark, depth, s->third);
		s->two = mw_growth_select(i, 2 * mark, depth, s->two);
		s->all = mw_growth_select(i, 3 * mark, depth, s->all);
	}
	s->depth = before;
	return s->n * 4 >= window * 3;
}

MW_INLINE void mw_growth_trend_clear(struct mw_growth_trend *trend)
{
	trend->slope_bps = 0;
	trend->growth = 0;
	trend->r2_permille = 0;
	trend->score = 0;
	trend->window = 0;
	trend->slowing = 0;
	trend->level = 0;
	trend->share = 0;
}

/* The least of the marks of all tests. */
MW_INLINE __u32 mw_growth_score_window(const struct mw_growth_sums *s, __u32 r2_permille, __u64 t2)
{
	__u32 middle = s->two - s->third, score, mark;

	score = mw_growth_grade(r2_permille, MW_GROWTH_R2_BAD, MW_GROWTH_R2_GOOD);
	mark = mw_growth_grade(t2, MW_GROWTH_T2_BAD, MW_GROWTH_T2_GOOD);
	score = mark < score ? mark : score;
	/* A growth that slows down will end. */
	mark = mw_growth_grade(mw_growth_percent(s->third, middle), MW_GROWTH_LAST_BAD,
			       MW_GROWTH_LAST_GOOD);
	score = mark < score ? mark : score;
	mark = mw_growth_grade(mw_growth_percent(s->third, s->all - s->two), MW_GROWTH_LAST_BAD,
			       MW_GROWTH_LAST_GOOD);
	score = mark < score ? mark : score;
	/* One that has only just begun may be the way up of a saw. */
	mark = mw_growth_grade(mw_growth_percent(s->all - s->two, middle), MW_GROWTH_FIRST_BAD,
			       MW_GROWTH_FIRST_GOOD);
	score = mark < score ? mark : score;
	mark = mw_growth_grade(mw_growth_percent(s->step, s->depth), MW_GROWTH_STEP_BAD,
			       MW_GROWTH_STEP_GOOD);
	score = mark < score ? mark : score;
	mark = mw_growth_grade(s->rising * 100 / (s->n - 1), MW_GROWTH_RISING_BAD,
			       MW_GROWTH_RISING_GOOD);
	return mark < score ? mark : score;
}

/*
 * Warm-up and fragmentation: each third gained less than the one before, and the
 * last one clearly so. A leak that begins after a warm-up is not like that.
 */
MW_INLINE int mw_growth_is_slowing(const struct mw_growth_sums *s)
{
	__u32 last = s->third, middle = s->two - s->third, first = s->all - s->two;

	return mw_growth_percent(last, middle) < MW_GROWTH_SLOWING ||
	       (last < middle && middle < first &&
		mw_growth_percent(last, first) < MW_GROWTH_SLOWING);
}

/*
 * A line through the envelope. With y at most 2^26 and 32 bins the sums times n
 * stay below 2^62; only R squared needs a product of two of them.
 */
MW_INLINE int mw_growth_fit_window(struct mw_growth_history *history, __u32 i, __u32 window)
{
	const struct mw_growth_level *level = &history->level[i];
	struct mw_growth_trend *trend = &history->attempt;
	struct mw_growth_sums *s = &history->sums;
	struct mw_growth_wide part, whole;
	__u64 num, den_x, den_y, t2;
	__u32 ppm;

	mw_growth_trend_clear(trend);
	trend->level = (__u8)i;
	if (level->bin <= window || !mw_growth_sum_window(level, window, s) || s->n < 3)
		return 0;
	trend->window = (__u8)window;
	trend->growth = s->depth;
	if (!s->depth)
		return 1;
	/* The envelope never falls, so neither does the line. */
	num = s->n * s->xy - s->x * s->y;
	den_x = s->n * s->xx - s->x * s->x;
	den_y = s->n * s->yy - s->y * s->y;
	part = mw_growth_multiply(num, num);
	whole = mw_growth_multiply(den_x, den_y);
	ppm = mw_growth_ppm(&part, &whole);
	t2 = ppm >= 1000000 ? 1000000 : ppm * (s->n - 2) / (1000000 - ppm);
	trend->r2_permille = (__u16)(ppm / 1000);
	if (den_x)
		trend->slope_bps = (num << MW_GROWTH_PAGE_SHIFT) /
				   (den_x * (20U << MW_GROWTH_SHIFT(i)));
	trend->score = (__u8)mw_growth_score_window(s, ppm / 1000, t2);
	trend->slowing = (__u8)mw_growth_is_slowing(s);
	return 1;
}

/* ------------------------------------------------------------------ bins */

/* One sample into a level. True when that closed a bin. */
MW_INLINE int mw_growth_level_add(struct mw_growth_level *level, __u32 bin, __u32 file, __u32 vsz,
				  __u32 signal)
{
	__u32 i, gap;

	if (level->bin == bin) {
		if (signal < level->low)
			level->low = signal;
		if (signal > level->high)
			level->high = signal;
		return 0;
	}
	gap = bin - level->bin;
	/* The first bin saw the start: what it holds is no level but a climb. */
	level->ring[level->bin & (MW_GROWTH_BINS - 1)] = level->bin ? level->low
								    : MW_GROWTH_MISSING;
	for (i = 1; i < MW_GROWTH_BINS; i++) {
		if (i >= gap)
			break;
		level->ring[(level->bin + i) & (MW_GROWTH_BINS - 1)] = MW_GROWTH_MISSING;
	}
	if (bin / 4 != level->bin / 4) {
		level->file[(bin / 4) & (MW_GROWTH_BINS / 4 - 1)] = file;
		level->vsz[(bin / 4) & (MW_GROWTH_BINS / 4 - 1)] = vsz;
	}
	level->bin = bin;
	level->peak = level->high;
	level->low = level->high = signal;
	return 1;
}

/* What @values, kept every fourth bin, seen about @window bins ago. */
MW_INLINE __u32 mw_growth_level_past(const __u32 *values, __u32 bin, __u32 window)
{
	__u32 back = (window - 1) / 4;

	if (bin / 4 < back)
		back = bin / 4;
	return values[(bin / 4 - back) & (MW_GROWTH_BINS / 4 - 1)];
}

#endif /* _MW_GROWTH_TREND_H */
