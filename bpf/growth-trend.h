/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The trend detector: linear regression through the lower envelope of a window of bins,
 * and the tests that tell steady growth from steps, saws and growth that slows down.
 * The envelope of a bin is the lowest signal of this bin and all later ones of the
 * window, so memory that was given back once more later does not count as growth.
 */
#ifndef _MW_GROWTH_TREND_H
#define _MW_GROWTH_TREND_H

#include "growth-history.h"

/*
 * BPF: the verifier follows every path through the functions that a program calls,
 * except through global functions, which it checks once and which take numbers only. So
 * a function that loops around another loop calls it by MW_GROWTH_CALL(name), which
 * growth.bpf.c defines as a global function that works on the state in a map.
 */
#ifndef MW_GROWTH_CALL
#define MW_GROWTH_CALL(name) mw_growth_##name
#endif

/*
 * The tests of a window. Each scores 100 at GOOD and beyond, 0 at BAD and beyond, and is
 * linear in between. The bounds were tuned on the tuning part of the evaluation corpus
 * (docs/evaluation.md).
 */
#define MW_GROWTH_R2_GOOD     900U /* R squared of the line, in thousandths */
#define MW_GROWTH_R2_BAD      500U
#define MW_GROWTH_T2_GOOD     25U /* square of Student's t of the slope */
#define MW_GROWTH_T2_BAD      4U
#define MW_GROWTH_LAST_GOOD   85U /* growth of the last third in percent of another third */
#define MW_GROWTH_LAST_BAD    20U
#define MW_GROWTH_FIRST_GOOD  70U /* growth of the first third in percent of the middle one */
#define MW_GROWTH_FIRST_BAD   10U
#define MW_GROWTH_STEP_GOOD   40U /* largest rise in percent of the growth of the window */
#define MW_GROWTH_STEP_BAD    70U
#define MW_GROWTH_RISING_GOOD 25U /* percent of the bins in which the envelope rose */
#define MW_GROWTH_RISING_BAD  8U

/*
 * Sums up the envelope of the last @window bins of @level. Returns 1 if at least three
 * quarters of the bins, the newest among them, have a sample. The loop goes back from
 * the newest bin: the envelope is then the lowest value so far, and one pass is enough.
 */
MW_INLINE int mw_growth_sum_window(const struct mw_growth_level *level, __u32 window,
				   struct mw_growth_sums *s)
{
	__u32 newest = level->ring[(level->bin - 1) & (MW_GROWTH_BINS - 1)], low = newest;
	__u32 mark = (window - 1) / 3, depth, before = 0, step, i, value;
	__u64 there;

	s->n = s->x = s->y = s->xx = s->xy = s->yy = 0;
	s->depth = s->step = s->rising = s->third = s->two_thirds = s->thirds = 0;
	if (newest == MW_GROWTH_MISSING)
		return 0;
	for (i = 0; i < window && i < MW_GROWTH_BINS; i++) {
		value = level->ring[(level->bin - 1 - i) & (MW_GROWTH_BINS - 1)];
		/* 1 if the bin has a sample, else 0. The loop has no branch: see growth-math.h. */
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
		s->two_thirds = mw_growth_select(i, 2 * mark, depth, s->two_thirds);
		s->thirds = mw_growth_select(i, 3 * mark, depth, s->thirds);
	}
	s->depth = before;
	return s->n * 4 >= window * 3;
}

/* The score of a window: the lowest score of all its tests. */
MW_INLINE __u32 mw_growth_score_window(const struct mw_growth_sums *s, __u32 r2_permille, __u64 t2)
{
	__u32 middle = s->two_thirds - s->third, score, grade;

	score = mw_growth_grade(r2_permille, MW_GROWTH_R2_BAD, MW_GROWTH_R2_GOOD);
	grade = mw_growth_grade(t2, MW_GROWTH_T2_BAD, MW_GROWTH_T2_GOOD);
	score = grade < score ? grade : score;
	/* Growth that slows down, such as a warm-up, ends by itself. */
	grade = mw_growth_grade(mw_growth_percent(s->third, middle), MW_GROWTH_LAST_BAD,
				MW_GROWTH_LAST_GOOD);
	score = grade < score ? grade : score;
	grade = mw_growth_grade(mw_growth_percent(s->third, s->thirds - s->two_thirds),
				MW_GROWTH_LAST_BAD, MW_GROWTH_LAST_GOOD);
	score = grade < score ? grade : score;
	/* Growth that has only begun may be the rising edge of a sawtooth. */
	grade = mw_growth_grade(mw_growth_percent(s->thirds - s->two_thirds, middle),
				MW_GROWTH_FIRST_BAD, MW_GROWTH_FIRST_GOOD);
	score = grade < score ? grade : score;
	grade = mw_growth_grade(mw_growth_percent(s->step, s->depth), MW_GROWTH_STEP_BAD,
				MW_GROWTH_STEP_GOOD);
	score = grade < score ? grade : score;
	grade = mw_growth_grade(s->rising * 100 / (s->n - 1), MW_GROWTH_RISING_BAD,
				MW_GROWTH_RISING_GOOD);
	return grade < score ? grade : score;
}

/*
 * Fits a line to the last @window bins of level @i; the trend goes to history->attempt.
 * Returns 0 if the bins do not suffice. Depths are at most 2^26 and there are at most 32
 * bins, so n times a sum stays below 2^62; only R squared, a ratio of products of two
 * such terms, needs 128 bits.
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
	/* The envelope never falls, so the slope of the line is not negative. */
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
				   (den_x * (MW_GROWTH_BIN_S << MW_GROWTH_SHIFT(i)));
	trend->score = (__u8)mw_growth_score_window(s, ppm / 1000, t2);
	return 1;
}

#endif /* _MW_GROWTH_TREND_H */
