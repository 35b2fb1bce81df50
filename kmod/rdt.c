// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Is there RDT, may we use it, and what must be left as it was.
 */
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/smp.h>

#include "compat/cpuid.h"
#include "fail.h"
#include "rdt.h"
#include "rmid.h"

#define RMIDS_EMULATED 512
#define PQR_RMID_MASK  0x3ffULL

static uint assume_rdt;
module_param(assume_rdt, uint, 0400);
MODULE_PARM_DESC(assume_rdt, "test: take the RDT path with so many RMIDs although there is no RDT");

static bool force;
module_param(force, bool, 0400);
MODULE_PARM_DESC(force, "use RDT although resctrl or another program uses it");

DEFINE_STATIC_KEY_FALSE(mw_pqr_key);

struct mw_rdt mw_rdt;

/* What the hardware offers; mw_rdt may fall short of it while it is in use. */
static u32 hardware_backend;
static char hardware_reason[sizeof(mw_rdt.reason)];

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

static void decide(u32 backend, const char *reason)
{
	mw_rdt.backend = backend;
	strscpy(mw_rdt.reason, reason, sizeof(mw_rdt.reason));
}

/*
 * The number of L3 monitoring RMIDs, or 0 and why. The highest leaf comes
 * first: beyond it CPUID answers with the data of another leaf, which looks
 * like thousands of RMIDs.
 */
static u32 enumerate(const char **why)
{
	u32 eax, ebx, ecx, edx;
	u64 pqr;

	*why = "CPUID leaf 0xF is absent";
	if (cpuid_eax(0) < 0xf)
		return 0;
	*why = "CPUID says no RDT monitoring";
	cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
	if (!(ebx & BIT(12)))
		return 0;
	*why = "CPUID says no L3 monitoring";
	cpuid_count(0xf, 0, &eax, &ebx, &ecx, &edx);
	if (!(edx & BIT(1)))
		return 0;
	cpuid_count(0xf, 1, &eax, &ebx, &ecx, &edx);
	*why = "PQR_ASSOC cannot be read or written";
	if (rdmsrq_safe(MW_MSR_PQR_ASSOC, &pqr) || wrmsrq_safe(MW_MSR_PQR_ASSOC, pqr))
		return 0;
	*why = "CPUID says L3 monitoring";
	return min_t(u32, ecx, PQR_RMID_MASK);
}

/**
 * mw_rdt_probe - find out what there is
 * @rmids: use no more than that, 0 for all
 */
void mw_rdt_probe(u32 rmids)
{
	const char *why;
	u32 nr = enumerate(&why);

	hardware_backend = MEMWATCH_BACKEND_EMULATED;
	if (nr)
		hardware_backend = boot_cpu_data.x86_vendor == X86_VENDOR_AMD ?
					   MEMWATCH_BACKEND_AMD_QOS :
					   MEMWATCH_BACKEND_INTEL_RDT;
	else
		nr = RMIDS_EMULATED;

	if (assume_rdt) {
		nr = min_t(u32, assume_rdt, PQR_RMID_MASK);
		hardware_backend = MEMWATCH_BACKEND_SIMULATED;
		why = "simulated, as the test parameter assume_rdt asks for";
		pr_notice("assume_rdt: PQR_ASSOC is written on a machine that may have no RDT\n");
	}
	if (rmids && (rmids < nr || hardware_backend == MEMWATCH_BACKEND_EMULATED))
		nr = min_t(u32, rmids, MW_RMID_MAX);

	mw_rdt.nr_rmids = nr;
	strscpy(hardware_reason, why, sizeof(hardware_reason));
	decide(hardware_backend, hardware_reason);
}

/*
 * Is resctrl mounted, in whatever mount name space? It would overwrite our RMID
 * at the next switch, or trust a cache that our write made wrong.
 */
static bool resctrl_is_mounted(void)
{
	struct file_system_type *type = get_fs_type("resctrl");
	bool mounted;

	if (!type)
		return false;
	mounted = !hlist_empty(&type->fs_supers);
	module_put(type->owner);
	return mounted;
}

/* An RMID in PQR_ASSOC before we wrote one: pqos, PCM or the like is at work. */
static void look_for_user(void *found)
{
	u64 pqr;

	rdmsrq(MW_MSR_PQR_ASSOC, pqr);
	if (pqr & PQR_RMID_MASK)
		WRITE_ONCE(*(bool *)found, true);
}

/* Decide for this session whether PQR_ASSOC may be written. */
int mw_rdt_arm(void)
{
	bool in_use = false;

	if (mw_fail(MW_FAIL_RDT))
		return -ENOMEM;
	decide(hardware_backend, hardware_reason);
	if (hardware_backend == MEMWATCH_BACKEND_EMULATED)
		return 0;

	if (hardware_backend != MEMWATCH_BACKEND_SIMULATED && !force) {
		on_each_cpu(look_for_user, &in_use, 1);
		if (resctrl_is_mounted())
			decide(MEMWATCH_BACKEND_EMULATED, "resctrl is mounted and uses RDT");
		else if (in_use)
			decide(MEMWATCH_BACKEND_EMULATED, "another program has set RMIDs");
	}
	if (mw_rdt.backend != MEMWATCH_BACKEND_EMULATED)
		static_branch_enable(&mw_pqr_key);
	else
		pr_warn("RMIDs are emulated: %s; parameter force overrides\n", mw_rdt.reason);
	return 0;
}

void mw_rdt_disarm(void)
{
	static_branch_disable(&mw_pqr_key);
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
	cpu->closid = pqr & GENMASK_ULL(63, 32);
	if (pqr & PQR_RMID_MASK)
		mw_rdt_write(cpu, 0);
}

/**
 * mw_rdt_verify - has somebody else written PQR_ASSOC?
 * @cpu: this CPU, interrupts off
 *
 * Once per tick: counts it, keeps the CLOSID found, and programs our RMID
 * again. This also puts right what suspend to RAM leaves on the boot CPU.
 */
void mw_rdt_verify(struct mw_cpu *cpu)
{
	u64 pqr;

	if (!static_branch_unlikely(&mw_pqr_key) ||
	    mw_rdt.backend == MEMWATCH_BACKEND_SIMULATED)
		return;
	rdmsrq(MW_MSR_PQR_ASSOC, pqr);
	if (pqr == (cpu->closid | (u32)cpu->owner))
		return;
	cpu->foreign_writes++;
	cpu->closid = pqr & GENMASK_ULL(63, 32);
	mw_rdt_write(cpu, (u32)cpu->owner);
}
