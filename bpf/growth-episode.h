/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The episode of a process: a time in which the signal keeps reaching new maxima. It
 * shows fast growth within seconds, long before a window of a history is full.
 */
#ifndef _MW_GROWTH_EPISODE_H
#define _MW_GROWTH_EPISODE_H

#include "growth-state.h"

/*
 * Slower growth than this many pages (256 KiB) in this time cannot be told from the
 * fluctuation of an idle process, so it does not begin an episode.
 */
#define MW_GROWTH_EPISODE_MIN	  64U
#define MW_GROWTH_EPISODE_STEP_NS (5 * MW_GROWTH_SECOND)

/* Growth has stalled after at least this time without a new maximum: three samples. */
#define MW_GROWTH_STALL_NS (15 * MW_GROWTH_SECOND)

/* An episode keeps its pace if its later half has this many tenths of the earlier slope. */
#define MW_GROWTH_PACE 8U

/* The least growth, in pages, that an alert or the verdict "growing" can be based on. */
#define MW_GROWTH_MASS (4 * MW_GROWTH_MIB)

MW_INLINE void mw_growth_episode_begin(struct mw_growth *g, __u32 signal, __u64 now)
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

MW_INLINE void mw_growth_episode_start(struct mw_growth *g, __u32 signal, __u64 now)
{
	if (g->top > g->ceiling)
		g->ceiling = g->top;
	mw_growth_episode_begin(g, signal, now);
}

/* Drops every second point; from now on points are twice as far apart. */
MW_INLINE void mw_growth_episode_thin(struct mw_growth *g, __u32 ms)
{
	__u32 i;

	for (i = 1; i < MW_GROWTH_POINTS / 2; i++)
		g->point[i] = g->point[2 * i];
	g->points = MW_GROWTH_POINTS / 2;
	g->gap_ms = ms / (MW_GROWTH_POINTS - 1) * 2;
}

/*
 * The growth and the duration of the later half of the points from @from on. Returns 0
 * if there are too few points, or if that half is slower than MW_GROWTH_PACE allows.
 */
MW_INLINE int mw_growth_episode_pace(const struct mw_growth *g, __u32 from, __u64 *pages, __u64 *ms)
{
	/*
	 * Indices are masked although they are in range: some verifiers do not remember
	 * the range of a register after a comparison.
	 */
	__u32 middle = (from + g->points) / 2U & (MW_GROWTH_POINTS - 1);
	__u32 last = (g->points - 1U) & (MW_GROWTH_POINTS - 1), p0, p1, p2, t1, t2;

	if (g->points < from + 4)
		return 0;
	/*
	 * Mask @from after the comparison: when a sum is compared, the verifier of 6.12
	 * forgets the range of the summand.
	 */
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
	/* With more growth than this the products below would overflow 64 bits. */
	if (p2 - p0 > MW_GROWTH_MAX_D)
		return 1;
	return *pages * t1 * 10 >= (__u64)(p1 - p0) * *ms * MW_GROWTH_PACE;
}

/*
 * Finds the first point from which the episode has not slowed down. A process that
 * leaks right from its start also grows by its start-up, which is faster; the origin is
 * the point where the start-up is over. Growth that settles is not taken for a leak because
 * an origin is found in it: no part of an exponential approach to a final size keeps its
 * pace while it covers MW_GROWTH_CONSUMED percent of what is left.
 *
 * If no point qualifies, the origin is point MW_GROWTH_POINTS - 4, or point 0 while there
 * are fewer points. mw_growth_episode_slope() checks the pace again, so the slope is 0 if
 * that point does not qualify either.
 */
MW_INLINE void mw_growth_episode_find_origin(struct mw_growth *g)
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
 * Updates the episode with one sample. A new episode begins
 * - when the signal has fallen by more than 1 MiB and by more than an eighth of the growth;
 * - when there was no new maximum for longer than a quarter of the growing time, and for
 *   longer than MW_GROWTH_STALL_NS;
 * - after MW_GROWTH_EPISODE_STEP_NS, as long as the episode has grown by fewer than
 *   MW_GROWTH_EPISODE_MIN pages.
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
	/* After 49 days, the times of points do not fit. What was gained so far is not forgotten.
	 */
	if (ms > ~0U) {
		mw_growth_episode_begin(g, signal, now);
		return;
	}
	g->top = signal;
	g->top_ns = now;
	at = (g->points - 1U) & (MW_GROWTH_POINTS - 1);
	if (ms - g->point[at].ms < g->gap_ms)
		return;
	if (g->points == MW_GROWTH_POINTS)
		mw_growth_episode_thin(g, (__u32)ms);
	at = g->points & (MW_GROWTH_POINTS - 1);
	g->point[at].ms = (__u32)ms;
	g->point[at].pages = signal;
	g->points = (__u8)(at + 1);
	mw_growth_episode_find_origin(g);
}

/* The origin of the episode: the point since which it has not slowed down. */
MW_INLINE const struct mw_growth_point *mw_growth_episode_origin(const struct mw_growth *g)
{
	return &g->point[g->origin & (MW_GROWTH_POINTS - 1)];
}

MW_INLINE __u64 mw_growth_point_ns(const struct mw_growth *g, const struct mw_growth_point *point)
{
	return g->onset_ns + point->ms * 1000000ULL;
}

/* Pages that the episode has gained since its origin. */
MW_INLINE __u32 mw_growth_episode_growth(const struct mw_growth *g)
{
	return mw_growth_sub_sat(g->top, mw_growth_episode_origin(g)->pages);
}

/* Bytes per second of the later half of the episode; 0 if it does not keep its pace. */
MW_INLINE __u64 mw_growth_episode_slope(const struct mw_growth *g)
{
	__u64 pages = 0, ms = 0;

	if (!mw_growth_episode_pace(g, g->origin, &pages, &ms) || !ms)
		return 0;
	return (pages << MW_GROWTH_PAGE_SHIFT) * 1000 / ms;
}

#endif /* _MW_GROWTH_EPISODE_H */
