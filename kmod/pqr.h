/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * IA32_PQR_ASSOC, the register that holds the RMID and the CLOSID of a CPU.
 * memwatch writes the RMID and preserves the CLOSID.
 */
#ifndef _MW_PQR_H
#define _MW_PQR_H

#include <linux/bitops.h>
#include <linux/jump_label.h>

#include "compat/msr.h"
#include "cpu.h"
#include "rdt.h"

/* On while a session runs and memwatch may write PQR_ASSOC. */
DECLARE_STATIC_KEY_FALSE(mw_pqr_key);

/* On while others write it too: the CLOSID is read back before each write. */
DECLARE_STATIC_KEY_FALSE(mw_pqr_shared_key);

bool mw_pqr_has_user(void);

/* On the CPU in question, interrupts off. */
void mw_pqr_capture(struct mw_cpu *cpu);
void mw_pqr_verify(struct mw_cpu *cpu);
void mw_pqr_reread_closid(struct mw_cpu *cpu);
void mw_pqr_clear_rmid(u32 rmid);

/*
 * Program @rmid. The register is written as a whole, with the CLOSID that it
 * had. wrmsrq() is the traced variant on purpose: tests watch msr:write_msr.
 */
static __always_inline void mw_pqr_write(struct mw_cpu *cpu, u32 rmid)
{
	if (static_branch_unlikely(&mw_pqr_shared_key))
		mw_pqr_reread_closid(cpu);
	cpu->pqr_writes++;
	__set_bit(rmid, cpu->ran);
	wrmsrq(MW_MSR_PQR_ASSOC, cpu->closid | rmid);
}

#endif /* _MW_PQR_H */
