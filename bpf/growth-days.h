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

#define MW_GROWTH_HOUR_S  3600U
#define MW_GROWTH_HOUR_NS (MW_GROWTH_HOUR_S * MW_GROWTH_SECOND)

/* Places for means; a power of two, so that a mask bounds an index. */
#define MW_GROWTH_HOURS	    256U

#define MW_GROWTH_DAY_HOURS 24U
#define MW_GROWTH_DAY_S	    86400U

/*
 * Rule "height": of the last RECENT hours, more than half are above every one of the WEEK
 * hours before, and the newest is, within half of the margin, the highest. With less than KNOWN
 * hours in all nothing is said: the hours before must have a day in them.
 */
#define MW_GROWTH_RECENT_HOURS 12U
#define MW_GROWTH_WEEK_HOURS   168U
#define MW_GROWTH_KNOWN_HOURS  36U

/* What "above" means: by this part of the highest hour, and by pages, see growth-forecast.h. */
#define MW_GROWTH_HEIGHT_PART 50U

/*
 * With less than YOUNG hours, what grows may be no more than a start that takes days. Growth of
 * the last third of the hours must then have this percentage of the growth of the first third.
 */
#define MW_GROWTH_YOUNG_HOURS 72U
#define MW_GROWTH_YOUNG_PACE  67U

/*
 * It still rises: the newer half of the recent hours is above the same hours of the day before
 * by this percentage of what the older half is. A cache that is full, and growth that slows
 * down, fall behind.
 */
#define MW_GROWTH_HEIGHT_RISES 90U

/**
 * struct mw_growth_days - mean signals by the hour
 * @sum: sum of the signals of the open hour, in pages
 * @samples: number of its samples
 * @hour: number of the open hour, counted from the start of the history
 * @height: highest mean of the week before the last 12 hours, in pages, when an hour was last
 *	closed
 * @pace: what a day adds, in pages, when an hour was last closed
 * @mean: mean of each closed hour in pages, or MW_GROWTH_MISSING
 */
struct mw_growth_days {
	__u64 sum;
	__u32 samples;
	__u32 hour;
	__u32 height;
	__u32 pace;
	__u32 mean[MW_GROWTH_HOURS];
};

MW_INLINE void mw_growth_days_init(struct mw_growth_days *days, __u32 signal)
{
	__u32 i;

	days->sum = signal;
	days->samples = 1;
	days->hour = days->height = days->pace = 0;
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
	__u32 at;

	/*
	 * Otherwise clang reads the hour at the end of a loop for its next round, and lets that
	 * fall through to the head of the loop, which verifiers refuse as a back-edge (seen
	 * with 6.1).
	 */
	MW_GROWTH_OPAQUE(days);
	at = days->hour - back;
	/* A compiler that knows the range of the hour leaves out the mask. */
	MW_GROWTH_OPAQUE(at);
	return days->mean[at & (MW_GROWTH_HOURS - 1)];
}

/*
 * The highest mean of the last @hours hours. It is MW_GROWTH_MISSING if one of them is missing. The
 * loop has no branch: see growth-math.h.
 */
MW_INLINE __u32 mw_growth_days_highest(const struct mw_growth_days *days, __u32 hours)
{
	__u32 highest = 0, i, mean;

	for (i = 1; i <= hours; i++) {
		mean = mw_growth_days_mean(days, i);
		highest = mw_growth_select(mean, highest, highest, mean);
	}
	return highest;
}

/**
 * struct mw_growth_gain - by how much hours are above the same hours of the day before
 * @sum: sum over the hours that are known of both days, in pages
 * @hours: how many these are
 */
struct mw_growth_gain {
	__s64 sum;
	__u32 hours;
};

/* Adds the hours from @from to @to back. The loop has no branch: see growth-math.h. */
MW_INLINE void mw_growth_gain_add(const struct mw_growth_days *days, __u32 from, __u32 to,
				  struct mw_growth_gain *gain)
{
	__u32 i, now, before;
	__u64 known;

	for (i = from; i <= to; i++) {
		now = mw_growth_days_mean(days, i);
		before = mw_growth_days_mean(days, i + MW_GROWTH_DAY_HOURS);
		known = mw_growth_select(now, MW_GROWTH_MISSING - 1, 1, 0) &
			mw_growth_select(before, MW_GROWTH_MISSING - 1, 1, 0);
		MW_GROWTH_OPAQUE(known);
		gain->sum += ((__s64)now - (__s64)before) * (__s64)known;
		gain->hours += (__u32)known;
	}
}

/* The mean of a gain in pages; 0 if there is none. */
MW_INLINE __u32 mw_growth_gain_mean(const struct mw_growth_gain *gain)
{
	__u64 mean;

	if (gain->sum <= 0 || !gain->hours)
		return 0;
	mean = (__u64)gain->sum / gain->hours;
	return mean > MW_GROWTH_MAX_D ? MW_GROWTH_MAX_D : (__u32)mean;
}

/* Do the newest hours gain as much over the day before as those before them? */
MW_INLINE int mw_growth_days_rise(const struct mw_growth_days *days)
{
	struct mw_growth_gain newer = {}, older = {};

	mw_growth_gain_add(days, 1, MW_GROWTH_RECENT_HOURS / 2, &newer);
	mw_growth_gain_add(days, MW_GROWTH_RECENT_HOURS / 2 + 1, MW_GROWTH_RECENT_HOURS, &older);
	if (!newer.hours || !older.hours)
		return 1;
	return (__u64)mw_growth_gain_mean(&newer) * 100 >=
	       (__u64)mw_growth_gain_mean(&older) * MW_GROWTH_HEIGHT_RISES;
}

/* Returns 1 if growth in a history of less than MW_GROWTH_YOUNG_HOURS slows down. */
MW_INLINE int mw_growth_days_settle(const struct mw_growth_days *days)
{
	__u32 third = days->hour / 3, first, then, before, now;

	if (days->hour >= MW_GROWTH_YOUNG_HOURS || !third)
		return 0;
	first = mw_growth_days_mean(days, days->hour);
	then = mw_growth_days_mean(days, days->hour - third);
	before = mw_growth_days_mean(days, 1 + third);
	now = mw_growth_days_mean(days, 1);
	if (first == MW_GROWTH_MISSING || then == MW_GROWTH_MISSING ||
	    before == MW_GROWTH_MISSING || now == MW_GROWTH_MISSING)
		return 0;
	return (__u64)mw_growth_sub_sat(now, before) * 100 <
	       (__u64)mw_growth_sub_sat(then, first) * MW_GROWTH_YOUNG_PACE;
}

/*
 * Returns 1 if the rule "height" is true for a margin of @least pages, and sets @height. The loops
 * have no branch: see growth-math.h.
 */
MW_INLINE int mw_growth_days_judge(struct mw_growth_days *days, __u32 least)
{
	__u32 newest = mw_growth_days_mean(days, 1), oldest = MW_GROWTH_MISSING;
	__u32 height = 0, known = 0, above = 0, highest = 0, i, mean;

	for (i = MW_GROWTH_RECENT_HOURS + 1; i <= MW_GROWTH_RECENT_HOURS + MW_GROWTH_WEEK_HOURS;
	     i++) {
		mean = mw_growth_days_mean(days, i);
		known += mw_growth_select(mean, MW_GROWTH_MISSING - 1, 1, 0);
		mean = mw_growth_select(mean, MW_GROWTH_MISSING - 1, mean, 0);
		height = mw_growth_select(mean, height, height, mean);
	}
	if (least < height / MW_GROWTH_HEIGHT_PART)
		least = height / MW_GROWTH_HEIGHT_PART;
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
	return known >= MW_GROWTH_KNOWN_HOURS && above > MW_GROWTH_RECENT_HOURS / 2 &&
	       newest != MW_GROWTH_MISSING && newest > least && newest > oldest &&
	       newest >= highest - highest / (2 * MW_GROWTH_HEIGHT_PART) &&
	       mw_growth_days_rise(days) && !mw_growth_days_settle(days);
}

#endif /* _MW_GROWTH_DAYS_H */
