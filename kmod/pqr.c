// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * PQR_ASSOC, see pqr.h: what it held before the session, whether another program
 * writes it, and how it is given back.
 */
#include <linux/memwatch.h>
#include <linux/smp.h>

#include "clock.h"
#include "pqr.h"
#include "trace.h"

/* A CPU sends at most one notice about foreign writes in this time. */
#define NOTICE_NS 1000000000ULL

DEFINE_STATIC_KEY_FALSE(mw_pqr_key);
DEFINE_STATIC_KEY_FALSE(mw_pqr_shared_key);

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

/**
 * mw_pqr_capture - note the CLOSID of a CPU that joins a session
 * @cpu: this CPU, interrupts off
 *
 * In the simulation the register reads 0 whatever was written. There each CPU
 * gets a CLOSID of its own, so that a test can see that no write changes it.
 */
void mw_pqr_capture(struct mw_cpu *cpu)
{
	u64 pqr;

	if (!static_branch_unlikely(&mw_pqr_key))
		return;
	if (mw_rdt.backend == MEMWATCH_BACKEND_SIMULATED) {
		cpu->closid = (u64)(smp_processor_id() + 1) << 32;
		return;
	}
	rdmsrq(MW_MSR_PQR_ASSOC, pqr);
	cpu->closid = pqr & MW_PQR_CLOSID;
	if (pqr & MW_PQR_RMID)
		mw_pqr_write(cpu, 0);
}

/* Read the CLOSID again, because another program may have changed it. */
void mw_pqr_reread_closid(struct mw_cpu *cpu)
{
	u64 pqr;

	rdmsrq(MW_MSR_PQR_ASSOC, pqr);
	cpu->closid = pqr & MW_PQR_CLOSID;
}

static void pqr_report_foreign_write(struct mw_cpu *cpu, u64 found)
{
	struct memwatch_record_notice rec = {
		.h = { .time_ns = mw_now(),
		       .type = MEMWATCH_RECORD_NOTICE,
		       .size = sizeof(rec),
		       .cpu = smp_processor_id() },
		.kind = MEMWATCH_NOTICE_FOREIGN_WRITE,
		.count = cpu->foreign_writes,
		.value = found,
	};

	if (cpu->notice_ns && rec.h.time_ns - cpu->notice_ns < NOTICE_NS)
		return;
	cpu->notice_ns = rec.h.time_ns;
	trace_memwatch_notice(&rec);
}

/**
 * mw_pqr_verify - check whether another program has written PQR_ASSOC
 * @cpu: this CPU, interrupts off
 *
 * Called at each tick. A foreign write is counted and reported; the CLOSID that
 * was found is kept, and the RMID is programmed again. This also repairs the
 * register of the boot CPU after suspend to RAM. Where memwatch shares the
 * register with resctrl, a changed CLOSID alone is not a foreign write: resctrl
 * sets it for each task.
 */
void mw_pqr_verify(struct mw_cpu *cpu)
{
	u64 pqr;

	if (!static_branch_unlikely(&mw_pqr_key) || mw_rdt.backend == MEMWATCH_BACKEND_SIMULATED)
		return;
	rdmsrq(MW_MSR_PQR_ASSOC, pqr);
	if (pqr == (cpu->closid | (u32)cpu->owner))
		return;
	cpu->closid = pqr & MW_PQR_CLOSID;
	if (static_branch_unlikely(&mw_pqr_shared_key) && (pqr & MW_PQR_RMID) == (u32)cpu->owner)
		return;
	cpu->foreign_writes++;
	pqr_report_foreign_write(cpu, pqr);
	mw_pqr_write(cpu, (u32)cpu->owner);
}

/*
 * Set the RMID of this CPU to 0 if it is still @rmid, the one that memwatch
 * wrote. Any other RMID belongs to the program that has taken over already.
 */
void mw_pqr_clear_rmid(u32 rmid)
{
	u64 pqr;

	rdmsrq(MW_MSR_PQR_ASSOC, pqr);
	if (rmid && (pqr & MW_PQR_RMID) == rmid)
		wrmsrq(MW_MSR_PQR_ASSOC, pqr & MW_PQR_CLOSID);
}
