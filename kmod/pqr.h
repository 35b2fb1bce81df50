/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * IA32_PQR_ASSOC, the register that holds the RMID and the CLOSID of a CPU.
 * memwatch writes the RMID and preserves the CLOSID.
 *
 * A write replaces both. The CLOSID belongs to others: to pqos, which may write it at
 * any moment through /dev/cpu/N/msr, and to resctrl, which may be mounted at any moment
 * and does not repeat a write that memwatch has undone. Neither can be known in advance,
 * and the first write that is lost is lost for good. So the register is read before each
 * write, always. Interrupts are off, so nobody writes it between the two: other software
 * writes it on this CPU, in a system call, an IPI or a context switch. This costs a
 * RDMSR, about 100 cycles, where a WRMSR is done anyway; a switch that does not change
 * the RMID does neither.
 *
 * Limits: a write of resctrl is not seen if it changes neither the RMID that memwatch had
 * programmed nor the CLOSID, before resctrl has been noticed; resctrl would have to give
 * that RMID to a group of the default class. pqos does not read and write the register in
 * one step, so it may write back an RMID that is out of date, which stays until the next
 * write or tick of memwatch. The class of a CPU that is offline is not kept: the kernel
 * clears the register when the CPU comes back, before memwatch reads it.
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

bool mw_pqr_has_user(void);

/* On the CPU in question, interrupts off. */
void mw_pqr_capture(struct mw_cpu *cpu);
void mw_pqr_note_foreign(struct mw_cpu *cpu, u64 found);
void mw_pqr_verify(struct mw_cpu *cpu);
void mw_pqr_hand_over(struct mw_cpu *cpu);

/* Find out what the register holds, which others may have changed. */
static __always_inline void mw_pqr_read(struct mw_cpu *cpu)
{
	u64 found;

	rdmsrq(MW_MSR_PQR_ASSOC, found);
	if (unlikely(found != cpu->pqr))
		mw_pqr_note_foreign(cpu, found);
}

/* Program @rmid. wrmsrq() is the traced variant on purpose: tests watch msr:write_msr. */
static __always_inline void mw_pqr_write(struct mw_cpu *cpu, u32 rmid)
{
	mw_pqr_read(cpu);
	cpu->pqr = (cpu->pqr & MW_PQR_CLOSID) | rmid;
	cpu->pqr_writes++;
	__set_bit(rmid, cpu->ran);
	wrmsrq(MW_MSR_PQR_ASSOC, cpu->pqr);
}

#endif /* _MW_PQR_H */
