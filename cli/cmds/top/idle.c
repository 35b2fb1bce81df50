// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * CPUs that sleep, see idle.h.
 */
#include "cmds/top/idle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"

void mw_top_idle_uninit(struct top_idle *idle)
{
	free(idle->since_ns);
	*idle = (struct top_idle){ 0 };
}

static int idle_begin(struct top_idle *idle, uint16_t cpu, uint64_t time_ns)
{
	size_t want = (size_t)cpu + 1, room = idle->nr_cpus;

	if (want > room) {
		if (mw_array_reserve(idle->since_ns, room, want))
			return -ENOMEM;
		memset(idle->since_ns + idle->nr_cpus, 0,
		       (room - idle->nr_cpus) * sizeof(*idle->since_ns));
		idle->nr_cpus = room;
	}
	idle->since_ns[cpu] = time_ns;
	return 0;
}

static void idle_end(struct top_idle *idle, const struct mw_feed *feed, uint16_t cpu)
{
	uint64_t open_ns = mw_feed_closed_ns(feed, feed->last_ns);

	if (cpu >= idle->nr_cpus)
		return;
	if (idle->since_ns[cpu] && idle->since_ns[cpu] < open_ns)
		idle->late_ns += open_ns - idle->since_ns[cpu];
	idle->since_ns[cpu] = 0;
}

int mw_top_idle_note(struct top_idle *idle, const struct mw_feed *feed,
		     const struct memwatch_record_header *record)
{
	const struct memwatch_record_cpu *state = (const void *)record;
	uint64_t slot = feed->last_ns / feed->slot_ns;

	if (slot != idle->slot)
		idle->late_ns = 0;
	idle->slot = slot;
	switch (record->type) {
	case MEMWATCH_RECORD_CPU_STATE:
		if (state->state == MEMWATCH_CPU_IDLE)
			return idle_begin(idle, record->cpu, record->time_ns);
		break;
	case MEMWATCH_RECORD_SAMPLE:
	case MEMWATCH_RECORD_TICK:
		break;
	default:
		return 0;
	}
	idle_end(idle, feed, record->cpu);
	return 0;
}

uint64_t mw_top_idle_cut(struct top_idle *idle, uint64_t end_ns, uint64_t sampled_ns)
{
	uint64_t before_ns = idle->counted_ns, asleep_ns = idle->late_ns;

	for (size_t i = 0; i < idle->nr_cpus; i++)
		if (idle->since_ns[i] && idle->since_ns[i] < end_ns)
			asleep_ns += end_ns - idle->since_ns[i];
	idle->counted_ns = asleep_ns;
	sampled_ns += asleep_ns;
	/* If the sample was lost, or found no place, less has come than was counted. */
	return sampled_ns > before_ns ? sampled_ns - before_ns : 0;
}
