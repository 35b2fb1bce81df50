/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Random sampling periods. A loop whose number of accesses divides a fixed period would always be
 * sampled at the same access. perfmon2 varied each period at random around its mean for this
 * reason, and so does ProfileMe/DCPI (Anderson et al., SOSP 1997). Linux was offered the same
 * ("perf_events: add sampling period randomization support", S. Eranian, March 2010), but does not
 * have it, so periods are drawn here and given to PERF_EVENT_IOC_PERIOD.
 */
#ifndef MW_STALE_ACCESS_PERIOD_H
#define MW_STALE_ACCESS_PERIOD_H

#include <stdint.h>

#define MW_ACCESS_PERIOD_MAX (1ULL << 32)

/*
 * Draws a period: @step times a prime number that is at most a quarter away from its mean, or a
 * little more to reach a prime. The mean of all periods is @mean, but for less than 1 % from 10 000
 * steps on. Without room for that, when @mean is less than 16 steps, it is @mean itself as a
 * multiple of @step. @mean is from 1 to MW_ACCESS_PERIOD_MAX; @state is a random number that
 * changes with each call.
 */
uint64_t mw_access_period(uint64_t *state, uint64_t mean, uint32_t step);

#endif /* MW_STALE_ACCESS_PERIOD_H */
