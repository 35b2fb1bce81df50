// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What ticks cost a CPU, see cost.h.
 */
#include "cost.h"

#define PPM 1000000ULL

/* Forget what was before: the period is new. */
void mw_cost_begin(struct mw_cost *cost, u64 spent_ns)
{
	*cost = (struct mw_cost){ .spent_ns = spent_ns };
}

static u32 cost_compute_ppm(u64 spent_ns, u64 slots_ns)
{
	/* So that the product does not overflow: a CPU cannot spend more time than passes. */
	if (spent_ns >= slots_ns)
		return PPM;
	return spent_ns * PPM / slots_ns;
}

/**
 * mw_cost_tick - a tick ends
 * @cost: of this CPU
 * @spent_ns: time spent in ticks since any fixed moment
 * @slots_ns: the period, times the slots since the last tick
 * @max_ppm: the limit; 0, there is none
 *
 * Return: true if a window ends with this tick, and the CPU spends too much
 */
bool mw_cost_tick(struct mw_cost *cost, u64 spent_ns, u64 slots_ns, u32 max_ppm)
{
	cost->slots_ns += slots_ns;
	if (++cost->ticks < MW_COST_TICKS)
		return false;
	cost->ppm = cost_compute_ppm(spent_ns - cost->spent_ns, cost->slots_ns);
	cost->over = max_ppm && cost->ppm > max_ppm ? cost->over + 1 : 0;
	cost->spent_ns = spent_ns;
	cost->slots_ns = 0;
	cost->ticks = 0;
	return mw_cost_is_over(cost);
}

bool mw_cost_is_over(const struct mw_cost *cost)
{
	return cost->over >= MW_COST_WINDOWS;
}

/* Slots remain aligned: each boundary of the longer slots is one of the shorter ones. */
u64 mw_cost_longer_period(u64 period_ns, u64 max_ns)
{
	return period_ns * 2 <= max_ns ? period_ns * 2 : period_ns;
}
