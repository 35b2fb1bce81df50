// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Looks the past of a signal up in its history, see past.h.
 */
#include "growth/past.h"

/* The lowest signal in the bin of a level that holds @when, or MW_GROWTH_MISSING. */
static __u32 level_signal(const struct mw_growth_history *history, __u32 i, __u64 when)
{
	const struct mw_growth_level *level = &history->level[i];
	__u64 bin = (when - history->start_ns) / MW_GROWTH_BIN_NS >> MW_GROWTH_SHIFT(i);

	if (bin >= level->bin)
		return level->low;
	if (level->bin - bin > MW_GROWTH_BINS)
		return MW_GROWTH_MISSING;
	return level->ring[bin & (MW_GROWTH_BINS - 1)];
}

__u32 mw_past_signal(const struct mw_growth *g, const struct mw_growth_history *history, __u64 when)
{
	__u32 signal;

	if (when < g->first_ns)
		return 0;
	if (!history || when < history->start_ns)
		return g->floor;
	for (__u32 i = 0; i < MW_GROWTH_LEVELS; i++) {
		signal = level_signal(history, i, when);
		if (signal != MW_GROWTH_MISSING)
			return signal;
	}
	return g->floor;
}

__u32 mw_past_growth(const struct mw_growth *g, const struct mw_growth_history *history, __u64 when)
{
	return mw_growth_sub_sat(g->signal, mw_past_signal(g, history, when));
}
