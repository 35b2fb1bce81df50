// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * RDT for one session, see rdt-session.h.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/smp.h>

#include "fail.h"
#include "notify.h"
#include "pqr.h"
#include "rdt-abmc.h"
#include "rdt-probe.h"
#include "rdt-read.h"
#include "rdt-session.h"
#include "rdt.h"
#include "resctrl.h"
#include "rmid.h"
#include "switch.h"

#define RMIDS_EMULATED 512

static bool force;
module_param(force, bool, 0400);
MODULE_PARM_DESC(force,
		 "use RDT, with the upper half of the RMIDs, although another program has set an "
		 "RMID; a mounted resctrl is not overridden");

/* What the hardware offers. mw_rdt may offer less while another user has RDT. */
static struct mw_rdt hardware;

/* The backend that was announced last, and how often one was. Guarded by mw_control_lock. */
static u32 announced;
static u64 announcements;

static void session_simulate_rdt(void)
{
	hardware = (struct mw_rdt){
		.backend = MEMWATCH_BACKEND_SIMULATED,
		.nr_rmids = min_t(u32, mw_fail_assumed_rmids(), MW_PQR_RMID),
		.nodes = 1,
		.reason = "requested by the test parameter assume_rdt",
	};
	pr_notice("assume_rdt: PQR_ASSOC will be written on a machine that may have no RDT\n");
}

/* The kernel, or whoever used resctrl, may have turned the assignment of counters on or off. */
static void session_use_hardware(void)
{
	mw_rdt = hardware;
	if (hardware.counters && !mw_rdt_abmc_is_enabled())
		mw_rdt.counters = 0;
}

static void session_emulate_rdt(struct mw_rdt *rdt, const char *why)
{
	rdt->backend = MEMWATCH_BACKEND_EMULATED;
	rdt->format.events = 0;
	strscpy(rdt->reason, why, sizeof(rdt->reason));
}

/*
 * pqos takes the lowest RMIDs that no CPU has set: with "force", leave the lower half to
 * it. Nothing makes other programs respect that.
 */
static void session_choose_rmids(u32 wanted)
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
 * mw_rdt_session_review - determine what a session that starts now would use
 *
 * While no session is started, this is what GET_INFO and status show. Whether other
 * programs have set RMIDs is not looked up, because that interrupts all CPUs. The
 * caller holds mw_control_lock, and no session is started.
 */
void mw_rdt_session_review(void)
{
	session_use_hardware();
	if (mw_resctrl_is_mounted())
		session_emulate_rdt(&mw_rdt, "resctrl is mounted and uses RDT");
}

/**
 * mw_rdt_session_init - determine the capabilities at load time
 * @rmids: use at most this many RMIDs, 0 for all
 */
void mw_rdt_session_init(u32 rmids)
{
	const char *why;

	if (mw_fail_assumed_rmids()) {
		session_simulate_rdt();
	} else {
		why = mw_rdt_probe(&hardware);
		strscpy(hardware.reason, "CPUID reports L3 monitoring", sizeof(hardware.reason));
		if (why)
			session_emulate_rdt(&hardware, why);
		else
			mw_resctrl_find();
	}
	session_choose_rmids(rmids);
	mw_rdt_session_review();
	announced = mw_rdt.backend;
	mw_rdt_read_init();
}

/* Say which backend is in use from now on, if it is another one. @what: why, and a remedy */
static void session_announce(const char *what)
{
	char text[MEMWATCH_NOTICE_TEXT_LEN];

	if (announced == mw_rdt.backend)
		return;
	announced = mw_rdt.backend;
	scnprintf(text, sizeof(text), "the backend is %s from now on: %s",
		  mw_rdt_backend_name(mw_rdt.backend), what);
	mw_notify(MEMWATCH_NOTICE_BACKEND, ++announcements, mw_rdt.backend, text);
}

/* The reason is shown as long as the session lasts, although it may cease to apply. */
static void session_refuse_rdt(const char *why, const char *remedy)
{
	char what[MEMWATCH_NOTICE_TEXT_LEN];

	session_emulate_rdt(&mw_rdt, why);
	scnprintf(what, sizeof(what), "%s; %s", why, remedy);
	session_announce(what);
}

/* Decide whether this session may write PQR_ASSOC. */
int mw_rdt_session_arm(void)
{
	if (mw_fail(MW_FAIL_RDT))
		return -ENOMEM;
	session_use_hardware();
	if (hardware.backend == MEMWATCH_BACKEND_EMULATED)
		return 0;

	if (mw_resctrl_is_mounted())
		session_refuse_rdt("resctrl was mounted when the session started",
				   "unmount it, and start another session");
	else if (hardware.backend != MEMWATCH_BACKEND_SIMULATED && !force && mw_pqr_has_user())
		session_refuse_rdt("another program had set RMIDs when the session started",
				   "the parameter force overrides this");
	if (mw_rdt.backend == MEMWATCH_BACKEND_EMULATED)
		return 0;
	session_announce("nothing else uses RDT");
	static_branch_enable(&mw_pqr_key);
	if (mw_rdt.counters)
		static_branch_enable(&mw_rdt_abmc_key);
	mw_rdt_read_arm();
	return 0;
}

/* Called when the session has ended on every CPU. */
void mw_rdt_session_disarm(void)
{
	static_branch_disable(&mw_pqr_key);
	static_branch_disable(&mw_rdt_abmc_key);
	mw_rdt_read_disarm();
}

/* From here on the hook charges this CPU to nobody and writes nothing. */
static void session_release_cpu(void *unused)
{
	struct mw_cpu *cpu = this_cpu_ptr(&mw_cpu);

	if (!cpu->live)
		return;
	mw_switch_abandon(cpu);
	mw_pqr_hand_over(cpu);
}

/**
 * mw_rdt_session_give_up - leave RDT to another user during a session
 * @reason: why, for the log and /proc/memwatch/status
 *
 * The caller holds mw_control_lock and cpus_read_lock, and calls mw_tick_admit_all()
 * before it releases the latter: from then on RMIDs are numbers without hardware
 * behind them.
 */
void mw_rdt_session_give_up(const char *reason)
{
	mw_rdt_read_end();
	on_each_cpu(session_release_cpu, NULL, 1);
	static_branch_disable_cpuslocked(&mw_pqr_key);
	session_emulate_rdt(&mw_rdt, reason);
	session_announce(reason);
}
