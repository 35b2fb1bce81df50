/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How the live memory of a site developed: points at equal distances in time. When there are too
 * many, every second one is dropped and the distance doubles, so that they always cover the whole
 * time.
 */
#ifndef MW_STALE_CURVE_H
#define MW_STALE_CURVE_H

#include <stdbool.h>
#include <stdint.h>

#define MW_CURVE_POINTS 16U

/**
 * struct mw_curve_clock - the times of the points of all curves
 * @first_ns: time of the first event
 * @distance_ns: between two points
 * @count: number of points; point i is at @first_ns + (i + 1) * @distance_ns
 */
struct mw_curve_clock {
	uint64_t first_ns, distance_ns;
	uint32_t count;
};

struct mw_curve_point {
	uint64_t bytes, objects;
};

void mw_curve_clock_init(struct mw_curve_clock *clock, uint64_t first_ns);

/* Whether a point, or the dropping of some, is due before an event at @time_ns. */
static inline bool mw_curve_is_due(const struct mw_curve_clock *clock, uint64_t time_ns)
{
	return (time_ns - clock->first_ns) / clock->distance_ns > clock->count;
}

/* Drops every second point of the clock. All curves must be thinned then. */
void mw_curve_clock_thin(struct mw_curve_clock *clock);
void mw_curve_thin(struct mw_curve_point *points);

#endif /* MW_STALE_CURVE_H */
