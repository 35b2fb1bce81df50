/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The spurt of an episode: its newest part, if that is much faster than what came before. The
 * points of an episode are the further apart the longer it lasts, so they show late that a leak
 * of hours has become one of minutes.
 */
#ifndef _MW_GROWTH_SPURT_H
#define _MW_GROWTH_SPURT_H

#include "growth-episode.h"
#include "growth-history.h"

/* A spurt is at least so many times as fast as the episode up to its last point. */
#define MW_GROWTH_SPURT_FACTOR 2U

/* When the episode reached its last maximum, in milliseconds since its onset. */
MW_INLINE __u32 mw_growth_top_ms(const struct mw_growth *g)
{
	return (__u32)((g->top_ns - g->onset_ns) / 1000000);
}

/* What comes after the last maximum may be a spurt. */
MW_INLINE void mw_growth_spurt_begin(struct mw_growth_spurt *spurt, const struct mw_growth *g)
{
	__u32 i;

	spurt->slope_bps = 0;
	for (i = 0; i < MW_GROWTH_SPURT_POINTS; i++) {
		spurt->point[i].ms = mw_growth_top_ms(g);
		spurt->point[i].pages = g->top;
	}
}

/* Is the growth since the beginning of the spurt faster than that of the episode was? */
MW_INLINE int mw_growth_spurt_is_fast(const struct mw_growth *g,
				      const struct mw_growth_spurt *spurt)
{
	const struct mw_growth_point *last = &g->point[(g->points - 1U) & (MW_GROWTH_POINTS - 1)];
	__u64 before = mw_growth_sub_sat(last->pages, g->point[0].pages);
	__u64 gained = mw_growth_sub_sat(g->top, spurt->point[0].pages);

	/* With more growth than this the product would overflow 64 bits. */
	if (before > MW_GROWTH_MAX_D)
		before = MW_GROWTH_MAX_D;
	return gained * last->ms >=
	       before * (mw_growth_top_ms(g) - spurt->point[0].ms) * MW_GROWTH_SPURT_FACTOR;
}

/*
 * The slope of the later part of the spurt, in bytes per second. It is 0 if it has gained less than
 * half of the headroom that is left, or if it does not keep its pace.
 */
MW_INLINE __u64 mw_growth_spurt_slope(const struct mw_growth *g,
				      const struct mw_growth_spurt *spurt)
{
	__u64 first = spurt->point[1].pages - spurt->point[0].pages;
	__u64 first_ms = spurt->point[1].ms - spurt->point[0].ms;
	__u64 later = g->top - spurt->point[1].pages;
	__u64 later_ms = mw_growth_top_ms(g) - spurt->point[1].ms;

	if (first + later < MW_GROWTH_MASS || first + later < g->headroom / 2 || !first_ms ||
	    !later_ms || later > MW_GROWTH_MAX_D ||
	    later * first_ms * 10 < first * later_ms * MW_GROWTH_PACE)
		return 0;
	return (later << MW_GROWTH_PAGE_SHIFT) * 1000 / later_ms;
}

/*
 * Updates the spurt after each sample. It begins anew when the episode does, when it is no faster
 * than the episode was, and when it has stalled as an episode does.
 */
MW_INLINE void mw_growth_spurt_update(struct mw_growth_spurt *spurt, const struct mw_growth *g)
{
	__u64 quiet = g->last_ns - g->top_ns, lasted;
	__u32 gained, ms = mw_growth_top_ms(g);

	if (quiet) {
		lasted = (ms - spurt->point[0].ms) * 1000000ULL;
		if (quiet > MW_GROWTH_STALL_NS && quiet > lasted / 4)
			mw_growth_spurt_begin(spurt, g);
		return;
	}
	if (!ms || !mw_growth_spurt_is_fast(g, spurt)) {
		mw_growth_spurt_begin(spurt, g);
		return;
	}
	gained = g->top - spurt->point[0].pages;
	if (gained / 2 >= spurt->point[2].pages - spurt->point[0].pages) {
		spurt->point[1] = spurt->point[2];
		spurt->point[2].ms = ms;
		spurt->point[2].pages = g->top;
	}
	spurt->slope_bps = mw_growth_spurt_slope(g, spurt);
}

/* The origin of the spurt, or of the episode if there is none. @history may be NULL. */
MW_INLINE const struct mw_growth_point *
mw_growth_newest_origin(const struct mw_growth *g, const struct mw_growth_history *history)
{
	return history && history->spurt.slope_bps ? &history->spurt.point[0]
						   : mw_growth_episode_origin(g);
}

/* The slope of the spurt, or of the episode if there is none. @history may be NULL. */
MW_INLINE __u64 mw_growth_newest_slope(const struct mw_growth *g,
				       const struct mw_growth_history *history)
{
	return history && history->spurt.slope_bps ? history->spurt.slope_bps
						   : mw_growth_episode_slope(g);
}

#endif /* _MW_GROWTH_SPURT_H */
