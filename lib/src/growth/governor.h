/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The cost governor of the growth monitor: from what was measured to how often
 * things may be done. It measures nothing itself and knows no clock.
 */
#ifndef MW_GOVERNOR_H
#define MW_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

/* The least time between two rounds, however cheap they are. */
#define MW_GOVERNOR_GAP_MIN_NS 5000000ULL
/* A round a minute is the least that detectors can work with. */
#define MW_GOVERNOR_PERIOD_MAX_NS 60000000000ULL
/* An event program over its budget so often in a row is taken off. */
#define MW_GOVERNOR_OVERRUNS_MAX 3
/* The least and the most time that it stays off, but for what it owes. */
#define MW_GOVERNOR_DETACH_MIN_NS 60000000000ULL
#define MW_GOVERNOR_DETACH_MAX_NS 960000000000ULL
#define MW_GOVERNOR_WIDTH_MAX	  8192

/**
 * struct mw_governor - state
 * @wanted_ns: period that was asked for
 * @rest_ppm: budget of regular rounds
 * @storm_ppm: budget of rounds that are asked for, and of the event program: this one
 *	may have three quarters, rounds have what it leaves
 * @event_ppm: what it took, when last looked at
 * @round_ns: cost of a round, smoothed
 * @period_ns: decision: from one round to the next
 * @gap_ns: decision: least time between rounds that are asked for
 * @width: decision: what the event program waits for before it looks
 * @width_min: the width to begin with
 * @overruns: measurements over budget, in a row
 * @attached: decision: should the event program be there
 * @debt_ns: time that the budget would have allowed for what was taken, since it was
 *	over it for the first time in a row
 * @detach_left_ns: until it is tried again
 * @detach_min_ns: the least that will be the next time
 * @detached: how often it was taken off
 */
struct mw_governor {
	uint64_t wanted_ns;
	uint32_t rest_ppm;
	uint32_t storm_ppm;
	uint32_t event_ppm;
	uint64_t round_ns;
	uint64_t period_ns;
	uint64_t gap_ns;
	uint32_t width;
	uint32_t width_min;
	uint32_t overruns;
	bool attached;
	uint64_t debt_ns;
	uint64_t detach_left_ns;
	uint64_t detach_min_ns;
	uint64_t detached;
};

void mw_governor_init(struct mw_governor *gov, uint64_t period_ns, uint32_t rest_ppm,
		      uint32_t storm_ppm, uint32_t width);

/* A round took @cpu_ns. */
void mw_governor_round(struct mw_governor *gov, uint64_t cpu_ns);

/*
 * The event program took @ppm of one CPU, looked at for a part of the @time_ns that
 * have passed since the last call; while it is off, @ppm is ignored. It stays off
 * until what it took is within the budget, time at rest included: so it is over
 * its budget for some seconds, but never in the mean.
 */
void mw_governor_events(struct mw_governor *gov, uint32_t ppm, uint64_t time_ns);

#endif /* MW_GOVERNOR_H */
