/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Tests of the decision that ticks cost too much, compiled for user space.
 */
#include "../../kmod/cost.h"
#include "../tap.h"

#define MS  1000000ULL
#define US  1000ULL
#define PPM 50000

static struct mw_cost cost;
static u64 spent;

/* @n windows, each tick of which takes @ns. Returns how often the CPU spent too much. */
static u32 run_windows(u32 n, u64 ns, u32 max_ppm)
{
	u32 raised = 0;

	for (u32 i = 0; i < n * MW_COST_TICKS; i++) {
		spent += ns;
		raised += mw_cost_tick(&cost, spent, MS, max_ppm);
	}
	return raised;
}

static void begin_session(void)
{
	mw_cost_begin(&cost, spent);
}

static void test_limit(void)
{
	begin_session();
	tap_eq(run_windows(100, 50 * US, PPM), 0, "a CPU may spend exactly as much as the limit");
	tap_eq(cost.ppm, 50000, "50 us of each millisecond are 5 %%");
	tap_eq(run_windows(MW_COST_WINDOWS - 1, 51 * US, PPM), 0,
	       "fewer windows over the limit are not enough");
	tap_ok(!mw_cost_is_over(&cost), "before the last of them, the CPU is not over the limit");
	tap_eq(run_windows(1, 51 * US, PPM), 1, "the last of them is reported");
	tap_ok(mw_cost_is_over(&cost), "afterwards the CPU is over the limit");
	tap_eq(run_windows(3, 51 * US, PPM), 3, "it is reported again at each window that follows");
	tap_eq(run_windows(1, 49 * US, PPM), 0, "a window below the limit is not reported");
	tap_ok(!mw_cost_is_over(&cost), "after a window below the limit, the CPU is not over it");
	begin_session();
	tap_eq(run_windows(100, 900 * US, 0), 0, "without a limit, nothing is too much");
	tap_eq(cost.ppm, 900000, "without a limit, the share is known all the same");
}

/* A hypervisor stops the CPU in a tick, now and then. */
static void test_exceptions(void)
{
	u32 raised = 0;

	begin_session();
	for (int i = 0; i < 100; i++) {
		spent += 500 * MS;
		raised += run_windows(1, 10 * US, PPM);
		raised += run_windows(1, 10 * US, PPM);
	}
	tap_eq(raised, 0, "a tick that takes half a second does not lengthen the period");
	tap_ok(cost.ppm < 20000, "the window after it has its own share");
}

static void test_slots(void)
{
	u32 raised = 0;

	begin_session();
	for (u32 i = 0; i < 10 * MW_COST_TICKS; i++) {
		spent += 60 * US;
		raised += mw_cost_tick(&cost, spent, 2 * MS, PPM);
	}
	tap_eq(raised, 0, "slots without a tick count as time");
	tap_eq(cost.ppm, 30000, "60 us of each second millisecond are 3 %%");

	begin_session();
	run_windows(MW_COST_WINDOWS, 60 * US, PPM);
	begin_session();
	tap_ok(!mw_cost_is_over(&cost), "a new period begins without a past");
	tap_eq(cost.ppm, 0, "a new period begins without a share");
	tap_eq(run_windows(MW_COST_WINDOWS - 1, 60 * US, PPM), 0,
	       "the time spent before is not counted for the new period");

	begin_session();
	raised = 0;
	for (u32 i = 0; i < MW_COST_TICKS; i++) {
		spent += 1ULL << 50;
		raised += mw_cost_tick(&cost, spent, 1000 * MS, PPM);
	}
	tap_eq(cost.ppm, 1000000, "a CPU does not spend more time than passes");
}

static void test_period(void)
{
	u64 period = 1 * MS, before;
	u32 doubled = 0;

	tap_eq(mw_cost_longer_period(100 * US, 16 * MS), 200 * US, "a period is doubled");
	while (mw_cost_longer_period(period, 16 * MS) != period) {
		before = period;
		period = mw_cost_longer_period(period, 16 * MS);
		doubled += period == 2 * before;
	}
	tap_eq(period, 16 * MS, "a period of 1 ms becomes 16 ms at most");
	tap_eq(doubled, 4, "each step doubles it");
	tap_eq(mw_cost_longer_period(9 * MS, 16 * MS), 9 * MS,
	       "a period stays as it is if the double is too long");
	tap_eq(mw_cost_longer_period(1000 * MS, 16 * MS), 1000 * MS,
	       "a period that is longer than the maximum stays as it is");
}

int main(void)
{
	tap_start();
	test_limit();
	test_exceptions();
	test_slots();
	test_period();
	return tap_done();
}
