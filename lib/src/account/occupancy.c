// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Levels over time. Products of the numbers of a hostile recording may wrap; then the mean is
 * wrong, and nothing else.
 */
#include "account/occupancy.h"

#include "base/timemath.h"

void mw_occupancy_hold(struct mw_occupancy *occupancy, uint64_t bytes, uint64_t from_ns,
		       uint64_t since_ns, unsigned __int128 area)
{
	if (!occupancy->holders++)
		occupancy->since_ns = mw_max_u64(from_ns, occupancy->until_ns);
	occupancy->area += area;
	occupancy->offset += (unsigned __int128)bytes * since_ns;
	occupancy->bytes += bytes;
	occupancy->max = mw_max_u64(occupancy->max, occupancy->bytes);
}

void mw_occupancy_release(struct mw_occupancy *occupancy, uint64_t bytes, uint64_t since_ns,
			  uint64_t until_ns)
{
	occupancy->area += (unsigned __int128)bytes * mw_sub_sat(until_ns, since_ns);
	occupancy->offset -= (unsigned __int128)bytes * since_ns;
	occupancy->bytes -= bytes;
	if (--occupancy->holders)
		return;
	occupancy->known_ns = mw_add_sat(occupancy->known_ns,
					 mw_sub_sat(until_ns, occupancy->since_ns));
	occupancy->until_ns = mw_max_u64(until_ns, occupancy->until_ns);
}

void mw_occupancy_touch(struct mw_occupancy *occupancy, uint64_t bytes)
{
	if (!occupancy->holders && !occupancy->known_ns)
		occupancy->max = mw_max_u64(occupancy->max, bytes);
}

void mw_occupancy_restart(struct mw_occupancy *occupancy, uint64_t begin_ns)
{
	struct memwatch_value held = { .parts = 1, .status = occupancy->readings.status };

	occupancy->area -= mw_occupancy_area(occupancy, begin_ns);
	occupancy->max = occupancy->bytes;
	occupancy->since_ns = begin_ns;
	occupancy->until_ns = occupancy->known_ns = 0;
	occupancy->readings = occupancy->holders ? held : (struct memwatch_value){ 0 };
}

uint64_t mw_occupancy_known(const struct mw_occupancy *occupancy, uint64_t now_ns)
{
	if (!occupancy->holders)
		return occupancy->known_ns;
	return mw_add_sat(occupancy->known_ns, mw_sub_sat(now_ns, occupancy->since_ns));
}

unsigned __int128 mw_occupancy_area(const struct mw_occupancy *occupancy, uint64_t now_ns)
{
	return occupancy->area + (unsigned __int128)occupancy->bytes * now_ns - occupancy->offset;
}

struct memwatch_value mw_occupancy_mean(const struct mw_occupancy *occupancy, uint64_t now_ns)
{
	uint64_t known_ns = mw_occupancy_known(occupancy, now_ns);
	struct memwatch_value mean = occupancy->readings;
	unsigned __int128 bytes = occupancy->max;

	if (known_ns)
		bytes = mw_occupancy_area(occupancy, now_ns) / known_ns;
	mean.value = bytes < UINT64_MAX ? (uint64_t)bytes : UINT64_MAX;
	return mean;
}

struct memwatch_value mw_occupancy_max(const struct mw_occupancy *occupancy)
{
	struct memwatch_value max = occupancy->readings;

	max.value = occupancy->max;
	return max;
}
