// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The statistics of a merge, see merge.h.
 */
#include "merge/state.h"
#include "base/timemath.h"

static bool source_is_silent(const struct mw_merge *merge, const struct mw_source *source)
{
	return mw_source_is_empty(source) && !source->away && !source->detached &&
	       source->newest_ns < mw_sub_sat(merge->read_at_ns, merge->opts.silent_ns);
}

/* Of a run that is read record by record, only the ticks that were read count. */
static uint64_t count_produced(const struct mw_merge *merge, uint32_t index)
{
	struct mw_merge_run given = { .at = merge->first };
	uint64_t count = merge->produced;

	if (index != merge->source || !merge->run.left)
		return merge->outputs[index].produced;
	while (given.at != merge->run.at) {
		const struct memwatch_record_header *header = mw_merge_run_next(&given);

		if (header->type == MEMWATCH_RECORD_TICK)
			count = ((const struct memwatch_record_tick *)header)->produced;
	}
	return count;
}

void mw_merge_stats(const struct mw_merge *merge, struct memwatch_stream_stats *ret)
{
	ret->forced = merge->forced;
	ret->watermark_ns = merge->delivered_ns;
	ret->memory_bytes = sizeof(*merge) +
			    merge->max_sources *
				    (sizeof(*merge->sources) + sizeof(*merge->outputs)) +
			    2 * merge->ready_max * sizeof(*merge->ready);
	ret->rings = merge->nr_sources;
	for (uint32_t i = 0; i < merge->nr_sources; i++) {
		const struct mw_source *source = &merge->sources[i];

		ret->produced += count_produced(merge, i);
		ret->delivered += merge->outputs[i].delivered;
		ret->late += source->late;
		ret->lost = mw_add_sat(ret->lost, source->lost);
		ret->malformed += source->malformed;
		ret->memory_bytes += source->ring.size +
				     source->max_pending * sizeof(*source->pending) +
				     (source->gaps ? MW_GAPS_MAX * sizeof(*source->gaps) : 0);
		ret->rings_silent += source_is_silent(merge, source);
	}
	ret->delivered -= merge->run.left;
}

int mw_merge_cpu_stats(const struct mw_merge *merge, unsigned int index,
		       struct memwatch_stream_cpu_stats *ret)
{
	const struct mw_source *source;

	if (index >= merge->nr_sources)
		return 0;
	source = &merge->sources[index];
	ret->produced = count_produced(merge, index);
	ret->delivered = merge->outputs[index].delivered;
	if (index == merge->source)
		ret->delivered -= merge->run.left;
	ret->late = source->late;
	ret->lost = source->lost;
	ret->malformed = source->malformed;
	ret->newest_ns = source->newest_ns;
	ret->cpu = source->cpu;
	ret->state = source->state;
	return 1;
}
