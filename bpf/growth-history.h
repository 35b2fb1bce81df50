/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The history of a process that has grown: the lowest signal of the last 32 bins, at
 * each of four bin widths ("levels"). Minima are kept because memory that a garbage
 * collector can give back is not leaked. How a line is fitted to the bins is in
 * growth-trend.h; what follows from the line is in growth-rules.h.
 */
#ifndef _MW_GROWTH_HISTORY_H
#define _MW_GROWTH_HISTORY_H

#include "growth-days.h"
#include "growth-state.h"

#define MW_GROWTH_BINS	 32U /* of a level; a power of two, so that a mask bounds an index */
#define MW_GROWTH_LEVELS 4U  /* a power of two, for the same reason */

/* Width of the bins of level 0: four samples at the default period of 5 s. */
#define MW_GROWTH_BIN_S	 20U
#define MW_GROWTH_BIN_NS (MW_GROWTH_BIN_S * MW_GROWTH_SECOND)

/*
 * The bins of a level are MW_GROWTH_BIN_S << shift wide: 20 s, 80 s, 320 s and 5120 s
 * (85 min), so that the levels cover 10 min, 42 min, 2.8 h and 45 h.
 */
#define MW_GROWTH_SHIFT(level) (2 * ((level) + (level) / 3))

/*
 * A process gets a history once its signal is this many pages above its minimum, or
 * its address space this many. Most processes of a host never reach either.
 */
#define MW_GROWTH_HISTORY_SIGNAL (MW_GROWTH_MIB / 2)
#define MW_GROWTH_HISTORY_VSZ	 (64 * MW_GROWTH_MIB)

/**
 * struct mw_growth_level - the bins of one width
 * @bin: index of the open bin, counted from &struct mw_growth_history.start_ns
 * @low: lowest signal in the open bin, in pages
 * @high: highest signal in the open bin
 * @peak: highest signal in the bin before the open one
 * @ever: highest signal of the bins that are no longer in @top
 * @ring: lowest signal of each closed bin, or MW_GROWTH_MISSING
 * @top: highest signal of each closed bin; 0 if it has no sample
 * @file: mapped file pages at the first sample of each group of four bins
 * @vsz: address space in pages at the same samples
 * @reserved: zero
 */
struct mw_growth_level {
	__u32 bin;
	__u32 low;
	__u32 high;
	__u32 peak;
	__u32 ever;
	__u32 reserved;
	__u32 ring[MW_GROWTH_BINS];
	__u32 top[MW_GROWTH_BINS];
	__u32 file[MW_GROWTH_BINS / 4];
	__u32 vsz[MW_GROWTH_BINS / 4];
};

/**
 * struct mw_growth_trend - the line through the last bins ("the window") of a level
 * @slope_bps: bytes per second, rounded down
 * @growth: pages from the start of the window to its end, along the envelope
 * @r2_permille: R squared of the line, in thousandths
 * @score: lowest score of all tests of the window; 100: passed all of them
 * @window: number of bins; 0: there is no trend
 * @level: the level that the bins belong to
 * @share: part of the growth that is signal and not mapped files, in percent
 * @reserved: zero
 */
struct mw_growth_trend {
	__u64 slope_bps;
	__u32 growth;
	__u16 r2_permille;
	__u8 score;
	__u8 window;
	__u8 level;
	__u8 share;
	__u8 reserved[6];
};

/* Points of a spurt. */
#define MW_GROWTH_SPURT_POINTS 3U

/**
 * struct mw_growth_spurt - the newest part of an episode, see growth-spurt.h
 * @slope_bps: bytes per second of its later part; 0: it does not count
 * @point: its beginning; a maximum from which on it has gained at least half; a later maximum
 */
struct mw_growth_spurt {
	__u64 slope_bps;
	struct mw_growth_point point[MW_GROWTH_SPURT_POINTS];
};

/**
 * struct mw_growth_sums - sums over a window, for the regression and its tests
 * @n: bins that have a sample
 * @x: sum of the bin numbers, counted back from the newest bin
 * @y: sum of the depths: how far the envelope is below its newest value, in pages
 * @xx: sum of the squares of the bin numbers
 * @xy: sum of the products of bin number and depth
 * @yy: sum of the squares of the depths
 * @rising: bins in which the envelope rose
 * @depth: depth of the oldest bin, which is the growth of the window
 * @step: largest rise between two neighbouring bins
 * @third: depth where the last third of the window begins
 * @two_thirds: depth where the last two thirds begin
 * @thirds: depth where the three thirds begin
 */
struct mw_growth_sums {
	__u64 n, x, y, xx, xy, yy;
	__u64 rising;
	__u32 depth;
	__u32 step;
	__u32 third;
	__u32 two_thirds;
	__u32 thirds;
};

/**
 * struct mw_growth_history - kept for a process that has grown
 * @start_ns: the beginning of bin 0 of all levels
 * @best: the trend with the highest score of all levels
 * @attempt: the trend of the window that was fitted last
 * @fired: the trend that made a rule true last
 * @sums: scratch space of the regression. It is here and not on the stack because a BPF
 *	program and all functions it calls share a stack of 512 bytes.
 * @level: the bins
 * @trend: the best trend of each level
 * @spurt: the newest part of the episode
 * @days: the hours of the last days
 */
struct mw_growth_history {
	__u64 start_ns;
	struct mw_growth_trend best;
	struct mw_growth_trend attempt;
	struct mw_growth_trend fired;
	struct mw_growth_sums sums;
	struct mw_growth_level level[MW_GROWTH_LEVELS];
	struct mw_growth_trend trend[MW_GROWTH_LEVELS];
	struct mw_growth_spurt spurt;
	struct mw_growth_days days;
};

MW_INLINE void mw_growth_trend_clear(struct mw_growth_trend *trend)
{
	trend->slope_bps = 0;
	trend->growth = 0;
	trend->r2_permille = 0;
	trend->score = 0;
	trend->window = 0;
	trend->level = 0;
	trend->share = 0;
}

/* Puts the highest signal of a closed bin into the ring, and what was there into @ever. */
MW_INLINE void mw_growth_level_push_top(struct mw_growth_level *level, __u32 bin, __u32 high)
{
	__u32 *top = &level->top[bin & (MW_GROWTH_BINS - 1)];

	if (*top > level->ever)
		level->ever = *top;
	*top = high;
}

/* Adds one sample to a level. Returns 1 if that closed a bin. */
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
	/*
	 * Bin 0 counts as missing: a history begins while the process grows, so the minimum
	 * of bin 0 is lower than those of later bins and would make the trend too steep.
	 */
	level->ring[level->bin & (MW_GROWTH_BINS - 1)] = level->bin ? level->low
								    : MW_GROWTH_MISSING;
	mw_growth_level_push_top(level, level->bin, level->high);
	for (i = 1; i < MW_GROWTH_BINS; i++) {
		if (i >= gap)
			break;
		level->ring[(level->bin + i) & (MW_GROWTH_BINS - 1)] = MW_GROWTH_MISSING;
		mw_growth_level_push_top(level, level->bin + i, 0);
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

/*
 * The entry of @values (the file or vsz of a level whose open bin is @bin) from about
 * @window bins ago, to the precision of the four bins between two entries.
 */
MW_INLINE __u32 mw_growth_level_past(const __u32 *values, __u32 bin, __u32 window)
{
	__u32 back = (window - 1) / 4;

	if (bin / 4 < back)
		back = bin / 4;
	return values[(bin / 4 - back) & (MW_GROWTH_BINS / 4 - 1)];
}

#endif /* _MW_GROWTH_HISTORY_H */
