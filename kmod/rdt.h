/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The seam to CPUID and the RDT model specific registers. The rest of the
 * module knows RMIDs as numbers.
 */
#ifndef _MW_RDT_H
#define _MW_RDT_H

#include <linux/bitops.h>
#include <linux/jump_label.h>
#include <linux/memwatch.h>

#include "compat/msr.h"
#include "cpu.h"
#include "rdt-count.h"

#define MW_MSR_QM_EVTSEL  0xc8d
#define MW_MSR_QM_CTR	  0xc8e
#define MW_MSR_PQR_ASSOC  0xc8f
#define MW_MSR_SNC_CONFIG 0xca0

#define MW_PQR_RMID	  0x3ffULL
#define MW_PQR_CLOSID	  GENMASK_ULL(63, 32)

/**
 * struct mw_rdt - what there is
 * @backend: &enum memwatch_backend in force
 * @nr_rmids: the highest id that may be allocated
 * @first_rmid: the lowest; those below are left to others
 * @format: how to read the counters; no events if they are not read
 * @per_node: with sub-NUMA clustering: RMIDs of each node, else 0
 * @nodes: with sub-NUMA clustering: nodes that share an L3 cache, else 1
 * @reason: why this backend
 */
struct mw_rdt {
	u32 backend;
	u32 nr_rmids;
	u32 first_rmid;
	struct mw_rdt_format format;
	u32 per_node;
	u32 nodes;
	char reason[96];
};

extern struct mw_rdt mw_rdt;

/* On while a session runs and PQR_ASSOC is ours to write. */
DECLARE_STATIC_KEY_FALSE(mw_pqr_key);

/* On when others write it too: the CLOSID is read back at each switch. */
DECLARE_STATIC_KEY_FALSE(mw_shared_key);

const char *mw_rdt_backend_name(u32 backend);
int mw_rdt_init(u32 rmids);
int mw_rdt_arm(void);
void mw_rdt_disarm(void);
void mw_rdt_end(const char *reason);
bool mw_rdt_is_forced(void);

/* On the CPU in question, interrupts off. */
void mw_rdt_capture(struct mw_cpu *cpu);
void mw_rdt_verify(struct mw_cpu *cpu);
void mw_rdt_reread(struct mw_cpu *cpu);

/*
 * CLOSID stays what it was, in the upper half. The register is written as a
 * whole, by the traced macro: msr:write_msr is how tests see it.
 */
static __always_inline void mw_rdt_write(struct mw_cpu *cpu, u32 rmid)
{
	if (static_branch_unlikely(&mw_shared_key))
		mw_rdt_reread(cpu);
	cpu->pqr_writes++;
	__set_bit(rmid, cpu->ran);
	wrmsrq(MW_MSR_PQR_ASSOC, cpu->closid | rmid);
}

#endif /* _MW_RDT_H */
