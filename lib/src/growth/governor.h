/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The cost governor of the growth monitor: from measured CPU times it decides how often
 * rounds run and whether the event program is attached. It measures nothing itself and
 * reads no clock.
 */
#ifndef MW_GOVERNOR_H
#define MW_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

/* Minimum time between two rounds, however cheap they are. */
#define MW_GOVERNOR_GAP_MIN_NS 5000000ULL
/* Longest period. Bins of 20 s need samples, so a longer one would blind the detectors. */
#define MW_GOVERNOR_PERIOD_MAX_NS 60000000000ULL
/* After this many measurements over the budget in a row the event program is detached. */
#define MW_GOVERNOR_OVERRUNS_MAX 3
/* Bounds of the minimum detach time, which doubles with each detach: 1 and 16 minutes. */
#define MW_GOVERNOR_DETACH_MIN_NS 60000000000ULL
#define MW_GOVERNOR_DETACH_MAX_NS 960000000000ULL
/*
 * While the event program is detached, rounds come at least this far apart. They may use
 * the quarter of the budget for fast growth that the event program does not use.
 */
#define MW_GOVERNOR_FAST_MIN_NS 250000000ULL
/* Largest width: 32 MiB in pages. */
#define MW_GOVERNOR_WIDTH_MAX 8192

/**
 * struct mw_governor - budgets, measurements and decisions
 * @wanted_ns: requested period
 * @rest_ppm: budget of the regular rounds, in millionths of one CPU
 * @storm_ppm: budget of requested rounds and the event program together. The event
 *	program may use three quarters of it; the rounds get what it leaves.
 * @event_ppm: last measured cost of the event program
 * @round_ns: average cost of a round
 * @period_ns: decision: time from one regular round to the next
 * @gap_ns: decision: minimum time between requested rounds
 * @fast_ns: decision: time from one round to the next while the event program is detached
 *	for its cost, so that fast growth is still found soon
 * @width: decision: see &struct mw_growth_control.width
 * @width_min: initial width, which is the smallest one
 * @overruns: measurements over the budget in a row
 * @attached: decision: whether the event program should be attached
 * @debt_ns: how long the program must be detached to pay for the CPU time that it used
 *	since the first of @overruns
 * @detach_left_ns: time until the event program is attached again
 * @detach_min_ns: minimum detach time after the next overrun
 * @detaches: how often the event program was detached
 */
struct mw_governor {
	uint64_t wanted_ns;
	uint32_t rest_ppm;
	uint32_t storm_ppm;
	uint32_t event_ppm;
	uint64_t round_ns;
	uint64_t period_ns;
	uint64_t gap_ns;
	uint64_t fast_ns;
	uint32_t width;
	uint32_t width_min;
	uint32_t overruns;
	bool attached;
	uint64_t debt_ns;
	uint64_t detach_left_ns;
	uint64_t detach_min_ns;
	uint64_t detaches;
};

void mw_governor_init(struct mw_governor *gov, uint64_t period_ns, uint32_t rest_ppm,
		      uint32_t storm_ppm, uint32_t width);

/* Reports that a round took @cpu_ns of CPU time. */
void mw_governor_round(struct mw_governor *gov, uint64_t cpu_ns);

/*
 * The time from one visit of all cgroups, which takes @cost_ns of CPU time, to the next: as long as
 * the part of @rest_ppm asks that is for visits, but not longer than the longest period.
 */
uint64_t mw_governor_visits(uint64_t cost_ns, uint64_t period_ns, uint32_t rest_ppm);

/*
 * Reports that the event program took @ppm of one CPU, measured during a part of the
 * @time_ns since the last call. While the program is detached, @ppm is ignored. It stays
 * detached until what it used is within the budget again, the detached time included: so
 * it exceeds the budget for some seconds, but not on average.
 */
void mw_governor_events(struct mw_governor *gov, uint32_t ppm, uint64_t time_ns);

#endif /* MW_GOVERNOR_H */
