/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reading the RDT counters, and the records about them.
 */
#ifndef _MW_RDT_READ_H
#define _MW_RDT_READ_H

#include <linux/jump_label.h>

#include "cpu.h"

struct mw_rdt_domain;

/* On while counters are read. */
DECLARE_STATIC_KEY_FALSE(mw_rdt_read_key);

/**
 * struct mw_rdt_bout - what a CPU may read in one go
 * @most: number of RMIDs; counts down
 * @end_ns: no reading begins that is expected to end later
 * @longest_ns: the longest time from one reading to the next
 */
struct mw_rdt_bout {
	u32 most;
	u64 end_ns;
	u64 longest_ns;
};

void mw_rdt_read_init(void);
void mw_rdt_read_arm(void);
void mw_rdt_read_disarm(void);
void mw_rdt_read_end(void);
void mw_rdt_read_settle(u64 ns);
u32 mw_rdt_read_ops(void);

/* On the CPU in question, interrupts off. */
void mw_rdt_read_announce(struct mw_rdt_domain *d, struct mw_cpu *cpu);
void mw_rdt_read_rotate(struct mw_rdt_domain *d, u64 before, u64 slot);

/* The same, with the lock of the domain where its CPUs share EVTSEL. */
bool mw_rdt_read_own(struct mw_rdt_domain *d, struct mw_cpu *cpu, struct mw_rdt_bout *bout);
bool mw_rdt_read_queue(struct mw_rdt_domain *d, struct mw_cpu *cpu, struct mw_rdt_bout *bout);
void mw_rdt_read_pass_counters(struct mw_rdt_domain *d, struct mw_cpu *cpu);
void mw_rdt_read_holders(struct mw_rdt_domain *d, struct mw_cpu *cpu, struct mw_rdt_bout *bout);
void mw_rdt_read_report_stale(struct mw_rdt_domain *d, struct mw_cpu *cpu, u32 most, u64 end_ns);

/* On the CPU in question, which is not live. Interrupts are on; may sleep. */
int mw_rdt_read_join(struct mw_cpu *cpu);
void mw_rdt_read_leave(struct mw_cpu *cpu);

#endif /* _MW_RDT_READ_H */
