// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * PQR_ASSOC, see pqr.h: what it held before the session, what other programs write to
 * it, and how it is given back.
 */
#include <linux/memwatch.h>
#include <linux/smp.h>

#include "clock.h"
#include "notify.h"
#include "pqr.h"
#include "resctrl.h"

DEFINE_STATIC_KEY_FALSE(mw_pqr_key);

static void pqr_find_user(void *found)
{
	u64 pqr;

	rdmsrq(MW_MSR_PQR_ASSOC, pqr);
	if (pqr & MW_PQR_RMID)
		WRITE_ONCE(*(bool *)found, true);
}

/*
 * Is an RMID set on any CPU? Before memwatch writes the register, this means
 * that another program uses RDT monitoring: pqos, PCM or the like.
 */
bool mw_pqr_has_user(void)
{
	bool found = false;

	on_each_cpu(pqr_find_user, &found, 1);
	return found;
}

/*
 * The RMID of a foreign write matters only if resctrl wrote it: resctrl would not write it
 * again. When it is mounted it takes it for granted that each CPU has RMID 0. What pqos
 * wrote may even be an RMID of memwatch, which it had read together with the class.
 */
static void pqr_remember_foreign(struct mw_cpu *cpu, u64 found)
{
	cpu->foreign_rmid = mw_resctrl_is_mounted() ? found & MW_PQR_RMID : 0;
}

/**
 * mw_pqr_capture - note what the register of a CPU holds that joins a session
 * @cpu: this CPU, interrupts off
 *
 * In the simulation the register reads 0 whatever was written. There each CPU gets a
 * CLOSID of its own, so that a test can see that no write changes it.
 */
void mw_pqr_capture(struct mw_cpu *cpu)
{
	cpu->foreign_rmid = 0;
	if (!static_branch_unlikely(&mw_pqr_key))
		return;
	if (mw_rdt.backend == MEMWATCH_BACKEND_SIMULATED) {
		cpu->pqr = (u64)(smp_processor_id() + 1) << 32;
		return;
	}
	rdmsrq(MW_MSR_PQR_ASSOC, cpu->pqr);
	pqr_remember_foreign(cpu, cpu->pqr);
	if (cpu->pqr & MW_PQR_RMID)
		mw_pqr_write(cpu, 0);
}

/**
 * mw_pqr_note_foreign - another program has written the register
 * @cpu: this CPU, interrupts off
 * @found: what the register holds
 *
 * The write is counted and reported. Its CLOSID stays in the register. An RMID that is
 * still that of memwatch says nothing: pqos changes the CLOSID only, but resctrl may have
 * given the same RMID to one of its groups.
 */
void mw_pqr_note_foreign(struct mw_cpu *cpu, u64 found)
{
	/* See mw_pqr_capture(). */
	if (mw_rdt.backend == MEMWATCH_BACKEND_SIMULATED)
		return;
	pqr_remember_foreign(cpu, found);
	cpu->pqr = found;
	cpu->foreign_writes++;
	if (mw_notify_is_due(&cpu->notice_ns, mw_now()))
		mw_notify(MEMWATCH_NOTICE_FOREIGN_WRITE, cpu->foreign_writes, found, NULL);
}

/**
 * mw_pqr_verify - check whether another program has written the register
 * @cpu: this CPU, interrupts off
 *
 * Called at each tick. If the RMID was changed, it is programmed again. A CPU that is not
 * live has handed the register over.
 */
void mw_pqr_verify(struct mw_cpu *cpu)
{
	if (!static_branch_unlikely(&mw_pqr_key) || !cpu->live ||
	    mw_rdt.backend == MEMWATCH_BACKEND_SIMULATED)
		return;
	mw_pqr_read(cpu);
	if ((cpu->pqr & MW_PQR_RMID) != (u32)cpu->owner)
		mw_pqr_write(cpu, (u32)cpu->owner);
}

/**
 * mw_pqr_hand_over - leave the register to resctrl
 * @cpu: this CPU, interrupts off
 *
 * resctrl writes only if it wants another value than the one that it wrote last. So the
 * RMID that it wrote last is restored, 0 if it wrote none.
 */
void mw_pqr_hand_over(struct mw_cpu *cpu)
{
	if (!static_branch_unlikely(&mw_pqr_key))
		return;
	mw_pqr_read(cpu);
	if ((cpu->pqr & MW_PQR_RMID) != cpu->foreign_rmid)
		mw_pqr_write(cpu, cpu->foreign_rmid);
}
