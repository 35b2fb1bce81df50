/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Whether the system has slept (suspend to RAM, hibernation): CLOCK_BOOTTIME goes on then, and
 * CLOCK_MONOTONIC does not.
 */
#ifndef MW_BASE_SLEEP_H
#define MW_BASE_SLEEP_H

#include "base/timemath.h"

/* How long the system has slept at most, at the last look; MW_TIME_MAX before the first one. */
struct mw_sleep {
	uint64_t most_ns;
};

/* Has the system slept since the last call? False at the first one. */
static inline bool mw_sleep_look(struct mw_sleep *sleep)
{
	/* The two clocks cannot be read at once: one is read before and after the other. */
	uint64_t before = mw_clock(CLOCK_MONOTONIC), boot = mw_clock(CLOCK_BOOTTIME);
	uint64_t least = mw_sub_sat(boot, mw_clock(CLOCK_MONOTONIC));
	uint64_t most = mw_sub_sat(boot, before);
	bool slept = least > sleep->most_ns;

	sleep->most_ns = slept ? most : mw_min_u64(most, sleep->most_ns);
	return slept;
}

#endif /* MW_BASE_SLEEP_H */
