/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What a day adds: the slope of growth below the wave of a day. The slope of the last hours is
 * that of a morning or of an evening, and several times that of a leak below it.
 *
 * Growth that has lasted for two days shows as the gain of the last day over the day before. Of
 * growth that began within the last day, only a part is in that gain. So the hours of this day,
 * less the mean of the same hours of the days before, are fitted by a constant up to a time, and a
 * line from then on. All times are tried, and that of the best fit counts.
 */
#ifndef _MW_GROWTH_PACE_H
#define _MW_GROWTH_PACE_H

#include "growth-days.h"

/* Days that the mean of the same hours is taken of. */
#define MW_GROWTH_PACE_DAYS 7U

/* The line is not shorter than this: less is not told from what one day has more than others. */
#define MW_GROWTH_PACE_HOURS 8U

/* Excesses have up to so many bits in the fit, so that its products fit 64 bits. */
#define MW_GROWTH_PACE_BITS 16U

/**
 * struct mw_growth_fit - sums over the newest hours, for the fit
 * @n: hours with an excess
 * @x: sum of their numbers, counted back from the open hour
 * @xx: sum of the squares of the numbers
 * @y: sum of the excesses
 * @xy: sum of the products of number and excess
 */
struct mw_growth_fit {
	__s64 n, x, xx, y, xy;
};

/*
 * By how many pages the hour @back is above the mean of the same hours of the days before, or
 * below. Sets @known to 1 if there is such a mean, else 0. There is no branch: see growth-math.h.
 */
MW_INLINE __s64 mw_growth_days_excess(const struct mw_growth_days *days, __u32 back, __u64 *known)
{
	__u32 now = mw_growth_days_mean(days, back), mean, i;
	__u64 n = 0, sum = 0, there;
	__s64 excess;

	for (i = 1; i <= MW_GROWTH_PACE_DAYS; i++) {
		mean = mw_growth_days_mean(days, back + i * MW_GROWTH_DAY_HOURS);
		there = mw_growth_select(mean, MW_GROWTH_MISSING - 1, 1, 0);
		MW_GROWTH_OPAQUE(there);
		sum += mean * there;
		n += there;
	}
	*known = mw_growth_select(n, 0, 0, 1) & mw_growth_select(now, MW_GROWTH_MISSING - 1, 1, 0);
	MW_GROWTH_OPAQUE(*known);
	excess = (__s64)now - (__s64)(sum / (n + mw_growth_select(n, 0, 1, 0)));
	return excess * (__s64)*known;
}

MW_INLINE void mw_growth_fit_add(struct mw_growth_fit *fit, const struct mw_growth_days *days,
				 __u32 back, __u32 shift)
{
	__u64 known;
	__s64 excess = mw_growth_days_excess(days, back, &known);

	excess >>= shift & 31;
	fit->n += (__s64)known;
	fit->x += (__s64)(back * known);
	fit->xx += (__s64)(back * back * known);
	fit->y += excess;
	fit->xy += excess * back;
}

/* How much excesses must be shifted right to have MW_GROWTH_PACE_BITS. */
MW_INLINE __u32 mw_growth_pace_shift(const struct mw_growth_days *days)
{
	__u32 i, shift = 0;
	__u64 known, all = 0;
	__s64 excess;

	for (i = 1; i <= MW_GROWTH_DAY_HOURS; i++) {
		excess = mw_growth_days_excess(days, i, &known);
		all |= (__u64)(excess ^ excess >> 63);
	}
	for (i = MW_GROWTH_PACE_BITS; i < 34; i++)
		shift += mw_growth_select(all >> i, 0, 0, 1);
	return shift;
}

/*
 * The slope, in 256ths of a page in an hour, of a line that begins @since hours back, is constant
 * before, and is fitted to all hours, the sums of which are @day; @part has the sums of those after
 * it began. It is 0 if the line falls. Sets @quality to how much of the variance it explains.
 */
MW_INLINE __u64 mw_growth_fit_slope(const struct mw_growth_fit *day,
				    const struct mw_growth_fit *part, __s64 since, __u64 *quality)
{
	__s64 x = since * part->n - part->x;
	__s64 xx = since * since * part->n - 2 * since * part->x + part->xx;
	__s64 xy = since * part->y - part->xy;
	__s64 over = day->n * xy - x * day->y, under = day->n * xx - x * x;
	__u64 slope;

	/* What is negative becomes 0. */
	over *= 1 - (__s64)((__u64)over >> 63);
	under *= 1 - (__s64)((__u64)under >> 63);
	slope = ((__u64)over << 8) / ((__u64)under + mw_growth_select((__u64)under, 0, 1, 0));
	*quality = slope * (__u64)over;
	return slope;
}

/* Sets what a day adds, 0 if it adds nothing or too little is known. */
MW_INLINE void mw_growth_days_measure(struct mw_growth_days *days)
{
	struct mw_growth_fit day = {}, part = {};
	struct mw_growth_gain gain = {};
	__u32 shift = mw_growth_pace_shift(days), i;
	__u64 slope, best = 0, quality, most = 0, better;

	for (i = 1; i <= MW_GROWTH_DAY_HOURS; i++)
		mw_growth_fit_add(&day, days, i, shift);
	for (i = 1; i <= MW_GROWTH_DAY_HOURS; i++) {
		mw_growth_fit_add(&part, days, i, shift);
		if (i < MW_GROWTH_PACE_HOURS)
			continue;
		slope = mw_growth_fit_slope(&day, &part, i, &quality);
		better = (most - quality) >> 63;
		MW_GROWTH_OPAQUE(better);
		most += (quality - most) * better;
		best += (slope - best) * better;
	}
	best = (best << (shift & 31)) * MW_GROWTH_DAY_HOURS >> 8;
	mw_growth_gain_add(days, 1, MW_GROWTH_DAY_HOURS, &gain);
	days->pace = mw_growth_gain_mean(&gain);
	if (day.n >= MW_GROWTH_RECENT_HOURS && best > days->pace)
		days->pace = best > MW_GROWTH_MAX_D ? MW_GROWTH_MAX_D : (__u32)best;
}

/* Bytes per second of what a day adds. */
MW_INLINE __u64 mw_growth_days_slope(const struct mw_growth_days *days)
{
	return ((__u64)days->pace << MW_GROWTH_PAGE_SHIFT) / MW_GROWTH_DAY_S;
}

#endif /* _MW_GROWTH_PACE_H */
