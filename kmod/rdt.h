/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The one seam to CPUID and the RDT model specific registers. The rest of the
 * module knows RMIDs as numbers.
 */
#ifndef _MW_RDT_H
#define _MW_RDT_H

#include <linux/jump_label.h>
#include <linux/memwatch.h>

#include "compat/msr.h"
#include "cpu.h"

#define MW_MSR_PQR_ASSOC 0xc8f

/**
 * struct mw_rdt - what there is
 * @backend: &enum memwatch_backend in force
 * @nr_rmids: ids that can be allocated, 1 to @nr_rmids
 * @reason: why this backend
 */
struct mw_rdt {
	u32 backend;
	u32 nr_rmids;
	char reason[96];
};

extern struct mw_rdt mw_rdt;

/* On while a session runs and PQR_ASSOC is ours to write. */
DECLARE_STATIC_KEY_FALSE(mw_pqr_key);

const char *mw_rdt_backend_name(u32 backend);
void mw_rdt_probe(u32 rmids);
int mw_rdt_arm(void);
void mw_rdt_disarm(void);

/* On the CPU in question, interrupts off. */
void mw_rdt_capture(struct mw_cpu *cpu);
void mw_rdt_verify(struct mw_cpu *cpu);

/*
 * CLOSID stays what it was, in the upper half. The register is written as a
 * whole, by the traced macro: msr:write_msr is how tests see it.
 */
static __always_inline void mw_rdt_write(struct mw_cpu *cpu, u32 rmid)
{
	cpu->pqr_writes++;
	wrmsrq(MW_MSR_PQR_ASSOC, cpu->closid | rmid);
}

#endif /* _MW_RDT_H */
