/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * When a CPU reads RDT counters: at its tick, and if that is not enough, in further
 * bouts until the next tick. A bout is limited in the number of operations and in
 * time, because interrupts are off.
 *
 * On Intel each CPU has an EVTSEL of its own, so all CPUs of a domain read at the
 * same time. On AMD they share one, so only one of them, in turn, reads in a slot.
 * The others leave at once: no CPU waits for another's bout with interrupts off.
 */
#ifndef _MW_RDT_BOUT_H
#define _MW_RDT_BOUT_H

#include "cpu.h"

/* How often CPUs that do not tick are asked which RMIDs ran on them. */
#define MW_RDT_BOUT_EXCLUDED_NS 250000000ULL

int mw_rdt_bout_init(void);
void mw_rdt_bout_arm(void);
void mw_rdt_bout_configure(u64 period_ns, bool all_tick);
u32 mw_rdt_bout_budget(void);

/* On the CPU in question, interrupts off. */
void mw_rdt_bout_tick(struct mw_cpu *cpu, u64 expected);
bool mw_rdt_bout_is_behind(const struct mw_cpu *cpu);
void mw_rdt_bout_excluded(void *slot);

#endif /* _MW_RDT_BOUT_H */
