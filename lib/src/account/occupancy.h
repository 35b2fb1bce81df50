/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The occupancy of one row over time: the sum of the levels that hold for its RMIDs. Each step
 * costs the same, however long a level holds.
 */
#ifndef MW_OCCUPANCY_H
#define MW_OCCUPANCY_H

#include <stdint.h>

#include <memwatch/value.h>

/**
 * struct mw_occupancy - the sum of the levels that hold, over time; zero at the start
 * @area: levels that do not hold any more, each multiplied by its time
 * @offset: levels that hold, each multiplied by the time at which it began
 * @bytes: the sum of the levels that hold
 * @max: the largest sum
 * @holders: how many levels hold
 * @since_ns: if there are any: since when at least one does
 * @until_ns: up to when @known_ns counts
 * @known_ns: for how long there were any before @since_ns
 * @readings: the statuses of all readings; it has no value
 */
struct mw_occupancy {
	unsigned __int128 area;
	unsigned __int128 offset;
	uint64_t bytes;
	uint64_t max;
	uint32_t holders;
	uint64_t since_ns;
	uint64_t until_ns;
	uint64_t known_ns;
	struct memwatch_value readings;
};

/* A level holds from @since_ns on. What was read in [@from_ns, @since_ns) before it is @area. */
void mw_occupancy_hold(struct mw_occupancy *occupancy, uint64_t bytes, uint64_t from_ns,
		       uint64_t since_ns, unsigned __int128 area);

/* A level does not hold any more. */
void mw_occupancy_release(struct mw_occupancy *occupancy, uint64_t bytes, uint64_t since_ns,
			  uint64_t until_ns);

/* A reading that does not hold for any time counts only if there is no other. */
void mw_occupancy_touch(struct mw_occupancy *occupancy, uint64_t bytes);

/* Forgets the time before @begin_ns; what holds still holds. */
void mw_occupancy_restart(struct mw_occupancy *occupancy, uint64_t begin_ns);

/* For how long there was a level, and the sum of levels multiplied by time, up to a moment. */
uint64_t mw_occupancy_known(const struct mw_occupancy *occupancy, uint64_t now_ns);
unsigned __int128 mw_occupancy_area(const struct mw_occupancy *occupancy, uint64_t now_ns);

/* The mean and the maximum up to a moment. */
struct memwatch_value mw_occupancy_mean(const struct mw_occupancy *occupancy, uint64_t now_ns);
struct memwatch_value mw_occupancy_max(const struct mw_occupancy *occupancy);

#endif /* MW_OCCUPANCY_H */
