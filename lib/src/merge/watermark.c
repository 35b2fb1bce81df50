// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The watermark of a merge, see merge.h.
 */
#include "merge/watermark.h"

#include "base/timemath.h"

/* The ring has reached a limit: it must not wait for the others any longer. */
static bool source_is_pressed(const struct mw_source *source)
{
	return source->nr_pending && (mw_source_is_full(source) ||
				      (mw_source_is_empty(source) && mw_source_fills_up(source)));
}

static bool source_has_older(const struct mw_source *source, uint64_t time_ns)
{
	for (uint32_t i = 0; i < source->nr_pending; i++) {
		if (source->pending[i].time_ns < time_ns)
			return true;
	}
	return false;
}

uint64_t mw_source_frontier(const struct mw_merge *merge, const struct mw_source *source)
{
	uint64_t newest = source->newest_ns;

	if (mw_source_is_empty(source)) {
		if (source->detached)
			return MW_TIME_MAX;
		if (source->away)
			newest = mw_max_u64(newest, merge->read_at_ns);
	}
	return mw_sub_sat(newest, merge->opts.grace_ns);
}

/*
 * The frontier with the rules that force delivery. A ring at its limit delivers all it
 * has if nothing in it is older than its @natural frontier. If any ring is at its limit
 * (@overload), empty rings hold nothing back; otherwise for silent_ns at most.
 */
static uint64_t source_forced_frontier(const struct mw_merge *merge, const struct mw_source *source,
				       uint64_t natural, bool overload)
{
	if (source_is_pressed(source))
		return source_has_older(source, natural) ? natural : source->newest_ns + 1;
	if (!mw_source_is_empty(source))
		return natural;
	if (overload)
		return MW_TIME_MAX;
	return mw_max_u64(natural, mw_sub_sat(merge->read_at_ns, merge->opts.silent_ns));
}

static bool merge_is_pressed(const struct mw_merge *merge)
{
	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		if (source_is_pressed(&merge->sources[i]))
			return true;
	}
	return false;
}

void mw_merge_find_watermark(const struct mw_merge *merge, struct mw_watermark *mark)
{
	bool overload = merge_is_pressed(merge);

	mark->natural_ns = MW_TIME_MAX;
	mark->forced_ns = MW_TIME_MAX;
	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		const struct mw_source *source = &merge->sources[i];
		uint64_t natural, forced;

		if (merge->finishing && mw_source_is_empty(source))
			continue;
		natural = mw_source_frontier(merge, source);
		forced = source_forced_frontier(merge, source, natural, overload);
		mark->natural_ns = mw_min_u64(mark->natural_ns, natural);
		mark->forced_ns = mw_min_u64(mark->forced_ns, forced);
	}
}

uint64_t mw_merge_deadline(const struct mw_merge *merge)
{
	uint64_t oldest = MW_TIME_MAX;
	uint64_t wait = 0;

	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		const struct mw_source *source = &merge->sources[i];

		for (uint32_t j = 0; j < source->nr_pending; j++)
			oldest = mw_min_u64(oldest, source->pending[j].time_ns);
	}
	if (oldest == MW_TIME_MAX)
		return MW_TIME_MAX;
	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		const struct mw_source *source = &merge->sources[i];

		if (mw_source_frontier(merge, source) <= oldest)
			wait = mw_max_u64(wait, source->away ? merge->opts.grace_ns
							     : merge->opts.silent_ns);
	}
	return mw_add_sat(mw_add_sat(oldest, wait), 1);
}
