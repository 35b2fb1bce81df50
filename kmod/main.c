// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Loading and unloading: the order of the steps, the parameters and the
 * metadata.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/memwatch.h>
#include <linux/tick.h>

#include "access.h"
#include "control.h"
#include "dev.h"
#include "notify.h"
#include "owner.h"
#include "policy.h"
#include "proc.h"
#include "rdt-bout.h"
#include "rdt-session.h"
#include "rdt.h"
#include "stretch.h"

static ulong period_ns = MEMWATCH_PERIOD_DEFAULT_NS;
module_param(period_ns, ulong, 0400);
MODULE_PARM_DESC(period_ns, "initial tick period in ns, 100000 to 1000000000 (default 1000000)");

static ulong limbo_ns = MEMWATCH_LIMBO_DEFAULT_NS;
module_param(limbo_ns, ulong, 0400);
MODULE_PARM_DESC(limbo_ns,
		 "initial limbo of a freed RMID in ns, up to 1000000000 (default 2000000)");

static char *policy = "fair";
module_param(policy, charp, 0400);
MODULE_PARM_DESC(policy,
		 "initial policy when there are too few RMIDs: fair (default), fifo or active");

static bool idle_stop = true;
module_param(idle_stop, bool, 0400);
MODULE_PARM_DESC(idle_stop, "initially, whether idle CPUs stop their tick (default yes)");

static uint rmids;
module_param(rmids, uint, 0400);
MODULE_PARM_DESC(rmids, "use at most this many RMIDs; without RDT: their number (default 512)");

static uint gid = U32_MAX;
module_param(gid, uint, 0400);
MODULE_PARM_DESC(gid, "group that may read /proc/memwatch and notices (default: none)");

/* By default a CPU of nohz_full= does not tick: whoever set it wants no interrupts there. */
static void main_choose_cpus(cpumask_t *cpus)
{
	unsigned int id;

	cpumask_clear(cpus);
	for_each_possible_cpu (id)
		if (!tick_nohz_full_cpu(id))
			cpumask_set_cpu(id, cpus);
}

/* A parameter that is out of range is refused; none is adjusted silently. */
static int main_read_parameters(void)
{
	struct mw_config *c = &mw_settings_default.config;

	c->tick.period_ns = period_ns;
	c->tick.idle_stop = idle_stop;
	main_choose_cpus(&c->tick.cpus);
	c->limbo_ns = limbo_ns;
	if (mw_policy_parse(policy) < 0) {
		pr_err("policy is \"%s\", but must be \"fair\", \"fifo\" or \"active\"\n", policy);
		return -EINVAL;
	}
	c->policy = mw_policy_parse(policy);
	if (period_ns < MEMWATCH_PERIOD_MIN_NS || period_ns > MEMWATCH_PERIOD_MAX_NS) {
		pr_err("period_ns is %llu, but must be %llu to %llu\n", (u64)period_ns,
		       MEMWATCH_PERIOD_MIN_NS, MEMWATCH_PERIOD_MAX_NS);
		return -EINVAL;
	}
	if (limbo_ns > MEMWATCH_LIMBO_MAX_NS) {
		pr_err("limbo_ns is %llu, but must be at most %llu\n", (u64)limbo_ns,
		       MEMWATCH_LIMBO_MAX_NS);
		return -EINVAL;
	}
	return 0;
}

/* The kernel silently registers no tracepoints for a module with one of these taints. */
static void main_check_taints(void)
{
#ifdef CONFIG_MODULES
	if (THIS_MODULE->taints & (BIT(TAINT_PROPRIETARY_MODULE) | BIT(TAINT_FORCED_MODULE)))
		pr_err("loaded by force or proprietary: the kernel disables its tracepoints\n");
#endif
}

static int __init memwatch_init(void)
{
	int err;

	err = main_read_parameters();
	if (err)
		return err;
	main_check_taints();
	err = mw_rdt_bout_init();
	if (!err)
		err = mw_stretch_init();
	if (err)
		return err;
	mw_rdt_session_init(rmids);
	err = mw_owner_init(mw_rdt.nr_rmids, mw_rdt.first_rmid, limbo_ns);
	if (err)
		return err;
	err = mw_policy_init();
	if (err)
		goto err_owner;
	mutex_lock(&mw_control_lock);
	mw_control_init();
	mutex_unlock(&mw_control_lock);
	mw_access_init(gid);
	err = mw_notify_init();
	if (err)
		goto err_policy;
	err = mw_proc_init();
	if (err)
		goto err_notify;
	err = mw_dev_init();
	if (err)
		goto err_proc;
	pr_info("%u RMIDs, %s: %s\n", mw_rmid_total(&mw_pool), mw_rdt_backend_name(mw_rdt.backend),
		mw_rdt.reason);
	return 0;

err_proc:
	mw_proc_uninit();
err_notify:
	mw_notify_uninit();
err_policy:
	mw_policy_uninit();
err_owner:
	mw_owner_uninit();
	return err;
}

/* Nothing is armed here: an open session holds a reference to the module. */
static void __exit memwatch_exit(void)
{
	mw_dev_uninit();
	mw_proc_uninit();
	mw_notify_uninit();
	mw_policy_uninit();
	mw_owner_uninit();
}

module_init(memwatch_init);
module_exit(memwatch_exit);

MODULE_DESCRIPTION(
	"Measures which process moves memory, with a resource monitoring id per process");
MODULE_AUTHOR("The memwatch authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(MW_VERSION);
