/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The memory of days: the mean signal of each of the last 180 hours. A wave that came
 * yesterday is no news; more than in all hours of the week before is. Means are kept and
 * not minima, because what separates a machine that leaks from one with a restless load is
 * where the signal is most of the time.
 */
#ifndef _MW_GROWTH_DAYS_H
#define _MW_GROWTH_DAYS_H

#include "growth-units.h"

#define MW_GROWTH_HOUR_NS (3600 * MW_GROWTH_SECOND)

/* Places for means; a power of two, so that a mask bounds an index. */
#define MW_GROWTH_HOURS 256U

/*
 * Rule "height": of the last RECENT hours, more than half are above every one of the WEEK
 * hours before, and the newest is, within half of the margin, the highest: it still rises. With
 * less than KNOWN hours in all nothing is said: the hours before must have a day in them.
 */
#define MW_GROWTH_RECENT_HOURS 12U
#define MW_GROWTH_WEEK_HOURS   168U
#define MW_GROWTH_KNOWN_HOURS  36U

/* Above means: by this many pages, and by this part of the highest hour. */
#define MW_GROWTH_HEIGHT_MIN  (8 * MW_GROWTH_MIB)
#define MW_GROWTH_HEIGHT_PART 50U

/**
 * struct mw_growth_days - mean signals by the hour
 * @sum: sum of the signals of the open hour, in pages
 * @samples: number of its samples
 * @hour: number of the open hour, counted from the start of the history
 * @height: highest mean of the week before the last 12 hours, in pages, when an hour was last
 *	closed
 * @gained: what the newest hour has more than the oldest of these 12, in pages
 * @mean: mean of each closed hour in pages, or MW_GROWTH_MISSING
 */
struct mw_growth_days {
	__u64 sum;
	__u32 samples;
	__u32 hour;
	__u32 height;
	__u32 gained;
	__u32 mean[MW_GROWTH_HOURS];
};

MW_INLINE void mw_growth_days_init(struct mw_growth_days *days, __u32 signal)
{
	__u32 i;

	days->sum = signal;
	days->samples = 1;
	days->hour = days->height = days->gained = 0;
	for (i = 0; i < MW_GROWTH_HOURS; i++)
		days->mean[i] = MW_GROWTH_MISSING;
}

/* Closes the open hour. Hours without a sample that come before @hour are missing. */
MW_INLINE void mw_growth_days_close(struct mw_growth_days *days, __u32 hour)
{
	__u32 i, gap = hour - days->hour;

	if (days->samples)
		days->mean[days->hour & (MW_GROWTH_HOURS - 1)] = (__u32)(days->sum / days->samples);
	for (i = 1; i < MW_GROWTH_HOURS; i++) {
		if (i >= gap)
			break;
		days->mean[(days->hour + i) & (MW_GROWTH_HOURS - 1)] = MW_GROWTH_MISSING;
	}
	days->hour = hour;
	days->sum = 0;
	days->samples = 0;
}

/* The mean of the hour @back hours before the open one; the newest closed one is 1 back. */
MW_INLINE __u32 mw_growth_days_mean(const struct mw_growth_days *days, __u32 back)
{
	return days->mean[(days->hour - back) & (MW_GROWTH_HOURS - 1)];
}

/*
 * Returns 1 if the rule "height" is true, and sets @height and @gained. The loops have no
 * branch: see growth-math.h.
 */
MW_INLINE int mw_growth_days_judge(struct mw_growth_days *days)
{
	__u32 newest = mw_growth_days_mean(days, 1), oldest = MW_GROWTH_MISSING;
	__u32 height = 0, least, known = 0, above = 0, highest = 0, i, mean;

	for (i = MW_GROWTH_RECENT_HOURS + 1; i <= MW_GROWTH_RECENT_HOURS + MW_GROWTH_WEEK_HOURS;
	     i++) {
		mean = mw_growth_days_mean(days, i);
		known += mw_growth_select(mean, MW_GROWTH_MISSING - 1, 1, 0);
		mean = mw_growth_select(mean, MW_GROWTH_MISSING - 1, mean, 0);
		height = mw_growth_select(mean, height, height, mean);
	}
	least = height / MW_GROWTH_HEIGHT_PART;
	if (least < MW_GROWTH_HEIGHT_MIN)
		least = MW_GROWTH_HEIGHT_MIN;
	least = mw_growth_add_sat(height, least);
	for (i = MW_GROWTH_RECENT_HOURS; i >= 1; i--) {
		mean = mw_growth_days_mean(days, i);
		known += mw_growth_select(mean, MW_GROWTH_MISSING - 1, 1, 0);
		oldest = mw_growth_select(oldest, MW_GROWTH_MISSING - 1, oldest, mean);
		mean = mw_growth_select(mean, MW_GROWTH_MISSING - 1, mean, 0);
		above += mw_growth_select(mean, least, 0, 1);
		highest = mw_growth_select(mean, highest, highest, mean);
	}
	days->height = height;
	days->gained = newest == MW_GROWTH_MISSING ? 0 : mw_growth_sub_sat(newest, oldest);
	return known >= MW_GROWTH_KNOWN_HOURS && above > MW_GROWTH_RECENT_HOURS / 2 &&
	       newest > least && newest >= highest - highest / (2 * MW_GROWTH_HEIGHT_PART) &&
	       days->gained;
}

/* Bytes per second over the last hours, when the rule is true. */
MW_INLINE __u64 mw_growth_days_slope(const struct mw_growth_days *days)
{
	return ((__u64)days->gained << MW_GROWTH_PAGE_SHIFT) /
	       ((MW_GROWTH_RECENT_HOURS - 1) * (MW_GROWTH_HOUR_NS / MW_GROWTH_SECOND));
}

#endif /* _MW_GROWTH_DAYS_H */
