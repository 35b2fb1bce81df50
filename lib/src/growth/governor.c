// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The decisions of the cost governor, see governor.h.
 */
#include "growth/governor.h"

#include "base/timemath.h"

/* The period at which a cost of @cost_ns is @ppm of one CPU. */
static uint64_t period_for_cost(uint64_t cost_ns, uint32_t ppm)
{
	return mw_mul_sat(cost_ns, 1000000) / ppm;
}

/* The part of the budget of regular rounds that is for visits of cgroups. */
#define VISITS_PERCENT 40

/* What the event program may use of the budget for fast growth: three quarters. */
static uint32_t event_budget(const struct mw_governor *gov)
{
	return gov->storm_ppm - gov->storm_ppm / 4;
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
		.fast_ns = period_ns,
		.width = width,
		.width_min = width,
		.attached = true,
		.detach_min_ns = MW_GOVERNOR_DETACH_MIN_NS,
	};
}

void mw_governor_round(struct mw_governor *gov, uint64_t cpu_ns)
{
	uint32_t left;

	/* The average gives a new value an eighth: one slow round does not change much. */
	if (gov->round_ns)
		gov->round_ns = gov->round_ns - gov->round_ns / 8 + cpu_ns / 8;
	else
		gov->round_ns = cpu_ns;
	gov->period_ns = mw_max_u64(gov->wanted_ns, period_for_cost(gov->round_ns, gov->rest_ppm));
	gov->period_ns = mw_min_u64(gov->period_ns,
				    mw_max_u64(gov->wanted_ns, MW_GOVERNOR_PERIOD_MAX_NS));
	left = gov->storm_ppm - (uint32_t)mw_min_u64(gov->event_ppm, event_budget(gov));
	/* Of a budget of less than 4 ppm nothing may be left. */
	left = left ? left : 1;
	gov->gap_ns = mw_max_u64(MW_GOVERNOR_GAP_MIN_NS, period_for_cost(gov->round_ns, left));
	gov->gap_ns = mw_min_u64(gov->gap_ns, gov->period_ns);
	gov->fast_ns = mw_max_u64(MW_GOVERNOR_FAST_MIN_NS,
				  period_for_cost(gov->round_ns, gov->storm_ppm / 4 + 1));
	gov->fast_ns = mw_min_u64(gov->fast_ns, gov->period_ns);
}

uint64_t mw_governor_visits(uint64_t cost_ns, uint64_t period_ns, uint32_t rest_ppm)
{
	uint64_t budget = mw_mul_sat(cost_ns, 1000000 * 100ULL) /
			  ((uint64_t)rest_ppm * VISITS_PERCENT + 1);

	/* A tenth less, so that rounds at even intervals are not missed by a moment. */
	return mw_min_u64(mw_max_u64(period_ns - period_ns / 10, budget),
			  MW_GOVERNOR_PERIOD_MAX_NS);
}

void mw_governor_events(struct mw_governor *gov, uint32_t ppm, uint64_t time_ns)
{
	const uint32_t budget = event_budget(gov);

	gov->event_ppm = gov->attached ? ppm : 0;
	if (!gov->attached) {
		gov->detach_left_ns = mw_sub_sat(gov->detach_left_ns, time_ns);
		if (gov->detach_left_ns)
			return;
		gov->attached = true;
		gov->overruns = 0;
		gov->debt_ns = 0;
		return;
	}
	if (ppm > budget) {
		gov->debt_ns = mw_add_sat(gov->debt_ns, mw_mul_sat(time_ns, ppm) / budget);
		if (gov->width < MW_GOVERNOR_WIDTH_MAX)
			gov->width *= 2;
		if (++gov->overruns < MW_GOVERNOR_OVERRUNS_MAX)
			return;
		gov->attached = false;
		gov->event_ppm = 0;
		gov->detach_left_ns = mw_max_u64(gov->detach_min_ns, gov->debt_ns);
		gov->detach_min_ns = mw_min_u64(2 * gov->detach_min_ns, MW_GOVERNOR_DETACH_MAX_NS);
		gov->detaches++;
		return;
	}
	gov->overruns = 0;
	gov->debt_ns = 0;
	if (ppm < budget / 2 && gov->width > gov->width_min)
		gov->width /= 2;
	if (ppm < budget / 2)
		gov->detach_min_ns = MW_GOVERNOR_DETACH_MIN_NS;
}
