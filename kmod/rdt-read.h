/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reading RDT's counters, and the records about them.
 */
#ifndef _MW_RDT_READ_H
#define _MW_RDT_READ_H

#include "cpu.h"

struct mw_rdt_domain;

int mw_rdt_read_init(void);
void mw_rdt_read_arm(void);
void mw_rdt_read_disarm(void);
void mw_rdt_read_end(void);
void mw_rdt_read_configure(u64 period_ns, bool all_tick);
u32 mw_rdt_read_budget(void);

/* With interrupts off. */
void mw_rdt_read_residue(u32 rmid, u32 generation, u64 now);

/* On the CPU in question, interrupts off. */
void mw_rdt_read_tick(struct mw_cpu *cpu, u64 expected);
bool mw_rdt_read_is_behind(const struct mw_cpu *cpu);
void mw_rdt_read_excluded(void *unused);

/* On a CPU of the domain, interrupts on. */
void mw_rdt_read_begin(struct mw_rdt_domain *d, struct mw_cpu *cpu);
void mw_rdt_read_last(struct mw_rdt_domain *d, struct mw_cpu *cpu, bool all);

#endif /* _MW_RDT_READ_H */
