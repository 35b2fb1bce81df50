/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The ticks, and what happens when a CPU comes online or goes offline.
 */
#ifndef _MW_TICK_H
#define _MW_TICK_H

#include <linux/cpumask.h>
#include <linux/types.h>

#include "cpu.h"

/**
 * struct mw_tick_config - when and where to tick
 * @period_ns: the period that is asked for; ticks are due at multiples of it
 * @idle_stop: whether an idle CPU stops its tick
 * @cpus: the CPUs that tick
 */
struct mw_tick_config {
	u64 period_ns;
	bool idle_stop;
	cpumask_t cpus;
};

int mw_tick_arm(void (*on_resctrl)(void), void (*on_cost)(void), u32 max_ppm);
void mw_tick_disarm(void);
void mw_tick_configure(const struct mw_tick_config *config);
bool mw_tick_lengthen(void);
bool mw_tick_is_lengthened(void);
u64 mw_tick_period(void);
bool mw_tick_is_rare(void);
bool mw_tick_is_rare_on(unsigned int id);
void mw_tick_admit_all(void);

#endif /* _MW_TICK_H */
