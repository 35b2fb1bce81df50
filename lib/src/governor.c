// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The governor's decisions, see governor.h.
 */
#include "governor.h"

#include "timemath.h"

/* How long to wait so that @cost_ns is @ppm of the time. */
static uint64_t interval(uint64_t cost_ns, uint32_t ppm)
{
	return mw_mul_sat(cost_ns, 1000000) / ppm;
}

void mw_governor_init(struct mw_governor *gov, uint64_t period_ns, uint32_t rest_ppm,
		      uint32_t storm_ppm, uint32_t width)
{
	*gov = (struct mw_governor){
		.wanted_ns = period_ns,
		.rest_ppm = rest_ppm,
		.storm_ppm = storm_ppm,
		.period_ns = period_ns,
		.gap_ns = MW_GOVERNOR_GAP_MIN_NS,
		.width = width,
		.width_min = width,
		.attached = true,
		.penalty = 6,
	};
}

void mw_governor_round(struct mw_governor *gov, uint64_t cpu_ns)
{
	/* An eighth of the new: one round that was in the way of something is no rule. */
	if (gov->round_ns)
		gov->round_ns = gov->round_ns - gov->round_ns / 8 + cpu_ns / 8;
	else
		gov->round_ns = cpu_ns;
	gov->period_ns = mw_max_u64(gov->wanted_ns, interval(gov->round_ns, gov->rest_ppm));
	gov->period_ns = mw_min_u64(gov->period_ns,
				    mw_max_u64(gov->wanted_ns, MW_GOVERNOR_PERIOD_MAX_NS));
	gov->gap_ns = mw_max_u64(MW_GOVERNOR_GAP_MIN_NS, interval(gov->round_ns, gov->storm_ppm));
	gov->gap_ns = mw_min_u64(gov->gap_ns, gov->period_ns);
}

void mw_governor_events(struct mw_governor *gov, uint32_t ppm)
{
	if (!gov->attached) {
		if (gov->rest && --gov->rest)
			return;
		gov->attached = true;
		gov->strikes = 0;
		return;
	}
	if (ppm > gov->storm_ppm) {
		if (gov->width < MW_GOVERNOR_WIDTH_MAX)
			gov->width *= 2;
		if (++gov->strikes < MW_GOVERNOR_STRIKES)
			return;
		gov->attached = false;
		gov->rest = gov->penalty;
		if (gov->penalty < 96)
			gov->penalty *= 2;
		gov->detached++;
		return;
	}
	gov->strikes = 0;
	if (ppm < gov->storm_ppm / 2 && gov->width > gov->width_min)
		gov->width /= 2;
	if (ppm < gov->storm_ppm / 2)
		gov->penalty = 6;
}
