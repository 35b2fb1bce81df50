/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reading the RDT counters, and the records about them.
 */
#ifndef _MW_RDT_READ_H
#define _MW_RDT_READ_H

#include "cpu.h"

/* How often CPUs that do not tick are asked which RMIDs ran on them. */
#define MW_RDT_READ_EXCLUDED_NS 250000000ULL

int mw_rdt_read_init(void);
void mw_rdt_read_arm(void);
void mw_rdt_read_disarm(void);
void mw_rdt_read_end(void);
void mw_rdt_read_configure(u64 period_ns, bool all_tick);
u32 mw_rdt_read_budget(void);

/* On the CPU in question, interrupts off. */
void mw_rdt_read_tick(struct mw_cpu *cpu, u64 expected);
bool mw_rdt_read_is_behind(const struct mw_cpu *cpu);
void mw_rdt_read_excluded(void *unused);

/* On the CPU in question, which is not live. Interrupts are on; may sleep. */
int mw_rdt_read_join(struct mw_cpu *cpu);
void mw_rdt_read_leave(struct mw_cpu *cpu);

#endif /* _MW_RDT_READ_H */
