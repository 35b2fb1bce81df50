/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The switch hook, and which owner this CPU is charged to.
 */
#ifndef _MW_SWITCH_H
#define _MW_SWITCH_H

#include "compat/sched.h"
#include "cpu.h"

/* On while idle CPUs stop their tick. */
DECLARE_STATIC_KEY_FALSE(mw_idle_stop_key);

void mw_switch_hook(MW_SCHED_SWITCH_PARAMETERS(prev, next));

/* On the CPU in question, interrupts off. */
void mw_switch_begin(struct mw_cpu *cpu);
void mw_switch_end(struct mw_cpu *cpu);
void mw_switch_abandon(struct mw_cpu *cpu);
void mw_switch_refresh(struct mw_cpu *cpu);
void mw_switch_tick(struct mw_cpu *cpu, u64 ns);

#endif /* _MW_SWITCH_H */
