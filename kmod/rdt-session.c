// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * May RDT be used, and PQR_ASSOC: who writes it, and what must be left as it
 * was.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/smp.h>

#include "clock.h"
#include "conflict.h"
#include "fail.h"
#include "rdt-probe.h"
#include "rdt-read.h"
#include "rdt.h"
#include "rmid.h"
#include "switch.h"
#include "trace.h"

#define RMIDS_EMULATED 512

/* A CPU announces foreign writes at most so often. */
#define NOTICE_NS 1000000000ULL

static uint assume_rdt;
module_param(assume_rdt, uint, 0400);
MODULE_PARM_DESC(assume_rdt, "test: take the RDT path with so many RMIDs although there is no RDT");

static bool force;
module_param(force, bool, 0400);
MODULE_PARM_DESC(force,
		 "use RDT although resctrl or another program uses it, with the upper RMIDs");

DEFINE_STATIC_KEY_FALSE(mw_pqr_key);
DEFINE_STATIC_KEY_FALSE(mw_shared_key);

struct mw_rdt mw_rdt;

/* What the hardware offers; mw_rdt may fall short of it while it is in use. */
static struct mw_rdt hardware;

const char *mw_rdt_backend_name(u32 backend)
{
	static const char *const names[] = {
		[MEMWATCH_BACKEND_EMULATED] = "emulated",
		[MEMWATCH_BACKEND_INTEL_RDT] = "intel-rdt",
		[MEMWATCH_BACKEND_AMD_QOS] = "amd-qos",
		[MEMWATCH_BACKEND_SIMULATED] = "simulated",
	};

	return backend < ARRAY_SIZE(names) ? names[backend] : "unknown";
}

bool mw_rdt_is_forced(void)
{
	return force;
}

static void simulate(void)
{
	hardware = (struct mw_rdt){
		.backend = MEMWATCH_BACKEND_SIMULATED,
		.nr_rmids = min_t(u32, assume_rdt, MW_PQR_RMID),
		.nodes = 1,
		.reason = "simulated, as the test parameter assume_rdt asks for",
	};
	pr_notice("assume_rdt: PQR_ASSOC is written on a machine that may have no RDT\n");
}

static void emulate(struct mw_rdt *rdt, const char *why)
{
	rdt->backend = MEMWATCH_BACKEND_EMULATED;
	rdt->format.events = 0;
	strscpy(rdt->reason, why, sizeof(rdt->reason));
}

/* Others take RMIDs from the bottom: with force, leave them half. */
static void choose_rmids(u32 wanted)
{
	u32 nr = hardware.nr_rmids;

	hardware.first_rmid = 1;
	if (hardware.backend == MEMWATCH_BACKEND_EMULATED) {
		hardware.nr_rmids = min_t(u32, wanted ?: RMIDS_EMULATED, MW_RMID_MAX);
	} else if (force) {
		wanted = clamp_t(u32, wanted ?: nr / 2, 1, nr);
		hardware.first_rmid = nr - wanted + 1;
	} else if (wanted) {
		hardware.nr_rmids = min(wanted, nr);
	}
}

/**
 * mw_rdt_init - find out what there is
 * @rmids: use no more than that, 0 for all
 */
int mw_rdt_init(u32 rmids)
{
	const char *why;

	if (assume_rdt) {
		simulate();
	} else {
		why = mw_rdt_probe(&hardware);
		strscpy(hardware.reason, "CPUID says L3 monitoring", sizeof(hardware.reason));
		if (why)
			emulate(&hardware, why);
	}
	choose_rmids(rmids);
	mw_rdt = hardware;
	return mw_rdt_read_init();
}

/* An RMID in PQR_ASSOC before we wrote one: pqos, PCM or the like is at work. */
static void look_for_user(void *found)
{
	u64 pqr;

	rdmsrq(MW_MSR_PQR_ASSOC, pqr);
	if (pqr & MW_PQR_RMID)
		WRITE_ONCE(*(bool *)found, true);
}

/* Decide for this session whether PQR_ASSOC may be written. */
int mw_rdt_arm(void)
{
	bool in_use = false;

	if (mw_fail(MW_FAIL_RDT))
		return -ENOMEM;
	mw_rdt = hardware;
	if (hardware.backend == MEMWATCH_BACKEND_EMULATED)
		return 0;

	if (hardware.backend != MEMWATCH_BACKEND_SIMULATED && !force) {
		on_each_cpu(look_for_user, &in_use, 1);
		if (mw_conflict_resctrl())
			emulate(&mw_rdt, "resctrl is mounted and uses RDT");
		else if (in_use)
			emulate(&mw_rdt, "another program has set RMIDs");
	}
	if (mw_rdt.backend == MEMWATCH_BACKEND_EMULATED) {
		pr_warn("RMIDs are emulated: %s; parameter force overrides\n", mw_rdt.reason);
		return 0;
	}
	if (force)
		static_branch_enable(&mw_shared_key);
	static_branch_enable(&mw_pqr_key);
	mw_rdt_read_arm();
	return 0;
}

/* No CPU is live any more. */
void mw_rdt_disarm(void)
{
	static_branch_disable(&mw_pqr_key);
	static_branch_disable(&mw_shared_key);
	mw_rdt_read_disarm();
}

/*
 * Give up this CPU's RMID, if it is still ours. A number that we did not write
 * is the other one's, who has taken over already. From here on the hook finds
 * nobody to charge, and writes nothing.
 */
static void hand_back(void *unused)
{
	struct mw_cpu *cpu = this_cpu_ptr(&mw_cpu);
	u32 ours = cpu->owner;
	u64 pqr;

	if (!cpu->live)
		return;
	mw_switch_abandon(cpu);
	rdmsrq(MW_MSR_PQR_ASSOC, pqr);
	if (ours && (pqr & MW_PQR_RMID) == ours)
		wrmsrq(MW_MSR_PQR_ASSOC, pqr & MW_PQR_CLOSID);
}

/**
 * mw_rdt_end - leave RDT to somebody else, in the middle of a session
 * @reason: why
 *
 * RMIDs go on as numbers, once the caller, who holds the control mutex, has
 * admitted the CPUs again.
 */
void mw_rdt_end(const char *reason)
{
	pr_warn("RMIDs are emulated from now on: %s\n", reason);
	mw_rdt_read_end();
	on_each_cpu(hand_back, NULL, 1);
	static_branch_disable(&mw_pqr_key);
	emulate(&mw_rdt, reason);
}

/**
 * mw_rdt_capture - note what must survive, on a CPU that starts
 * @cpu: this CPU, interrupts off
 *
 * In the simulation the register reads 0 whatever was written. A CLOSID of its
 * own on each CPU lets a test see that no write ever changes it.
 */
void mw_rdt_capture(struct mw_cpu *cpu)
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
		mw_rdt_write(cpu, 0);
}

/* Others write the register at will: what is the CLOSID now? */
void mw_rdt_reread(struct mw_cpu *cpu)
{
	u64 pqr;

	rdmsrq(MW_MSR_PQR_ASSOC, pqr);
	cpu->closid = pqr & MW_PQR_CLOSID;
}

static void announce(struct mw_cpu *cpu, u64 found)
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
 * mw_rdt_verify - has somebody else written PQR_ASSOC?
 * @cpu: this CPU, interrupts off
 *
 * Once per tick: counts it, keeps the CLOSID found, and programs our RMID
 * again. This also puts right what suspend to RAM leaves on the boot CPU. What
 * runs under resctrl, which was forced upon us, changes its CLOSID by right.
 */
void mw_rdt_verify(struct mw_cpu *cpu)
{
	u64 pqr;

	if (!static_branch_unlikely(&mw_pqr_key) || mw_rdt.backend == MEMWATCH_BACKEND_SIMULATED)
		return;
	rdmsrq(MW_MSR_PQR_ASSOC, pqr);
	if (pqr == (cpu->closid | (u32)cpu->owner))
		return;
	cpu->closid = pqr & MW_PQR_CLOSID;
	if (force && (pqr & MW_PQR_RMID) == (u32)cpu->owner)
		return;
	cpu->foreign_writes++;
	announce(cpu, pqr);
	mw_rdt_write(cpu, (u32)cpu->owner);
}
