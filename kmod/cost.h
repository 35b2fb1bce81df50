/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which share of its time a CPU spends in ticks, and whether that is too much. This file
 * uses no lock and no clock. It is also built in user space, where it is tested.
 *
 * The share is the mean of a window of MW_COST_TICKS ticks. One window may be exceptional:
 * a hypervisor may have stopped the CPU in a tick. So a CPU spends too much when
 * MW_COST_WINDOWS windows in a row are over the limit.
 */
#ifndef _MW_COST_H
#define _MW_COST_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stdint.h>
typedef uint64_t u64;
typedef uint32_t u32;
#endif

#define MW_COST_TICKS	128
#define MW_COST_WINDOWS 4

/**
 * struct mw_cost - what ticks cost one CPU
 * @spent_ns: time spent in ticks, up to the beginning of this window
 * @slots_ns: length of the slots of this window
 * @ticks: ticks in this window
 * @over: windows over the limit in a row, up to the last complete one
 * @ppm: share of the time that was spent in the last complete window
 */
struct mw_cost {
	u64 spent_ns;
	u64 slots_ns;
	u32 ticks;
	u32 over;
	u32 ppm;
};

void mw_cost_begin(struct mw_cost *cost, u64 spent_ns);
bool mw_cost_tick(struct mw_cost *cost, u64 spent_ns, u64 slots_ns, u32 max_ppm);
bool mw_cost_is_over(const struct mw_cost *cost);

u64 mw_cost_longer_period(u64 period_ns, u64 max_ns);

#endif /* _MW_COST_H */
