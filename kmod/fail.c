// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The parameters for tests, see fail.h. This file is part of a build for tests only.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/printk.h>

#include "fail.h"

static uint fail_step;
module_param(fail_step, uint, 0600);
MODULE_PARM_DESC(fail_step, "for tests: the step that fails, 1 to fail_steps; one more: removing "
			    "a probe; 0 for none");

static uint fail_steps = MW_FAIL_STEPS;
module_param(fail_steps, uint, 0400);
MODULE_PARM_DESC(fail_steps, "for tests: the number of steps");

static uint assume_rdt;
module_param(assume_rdt, uint, 0400);
MODULE_PARM_DESC(assume_rdt, "for tests: simulate RDT with this many RMIDs");

static uint delay_ms;
module_param(delay_ms, uint, 0600);
MODULE_PARM_DESC(delay_ms, "for tests: how long to wait where others may come between two steps");

static ulong idle_jiffies;
module_param(idle_jiffies, ulong, 0600);
MODULE_PARM_DESC(idle_jiffies, "for tests: what runs is believed to have run so long ago");

static void (*fail_storm)(u32 nr);

static int fail_set_storm(const char *value, const struct kernel_param *param)
{
	u32 nr;
	int err = kstrtou32(value, 0, &nr);

	if (!err && fail_storm)
		fail_storm(nr);
	return err;
}

static const struct kernel_param_ops fail_storm_ops = { .set = fail_set_storm };
module_param_cb(notices, &fail_storm_ops, NULL, 0200);
MODULE_PARM_DESC(notices, "for tests: send this many notices at once");

/* A parameter is written with the lock of parameters, and so is this, when unloading. */
void mw_fail_on_storm(void (*storm)(u32 nr))
{
	kernel_param_lock(THIS_MODULE);
	fail_storm = storm;
	kernel_param_unlock(THIS_MODULE);
}

void mw_fail_delay(const char *what)
{
	u32 ms = READ_ONCE(delay_ms);

	if (!ms)
		return;
	pr_notice("fault injection: %s waits\n", what);
	msleep(ms);
}

unsigned long mw_fail_idle(void)
{
	return READ_ONCE(idle_jiffies);
}

u32 mw_fail_assumed_rmids(void)
{
	return assume_rdt;
}

bool mw_fail(enum mw_fail_step step)
{
	if (likely(READ_ONCE(fail_step) != step))
		return false;
	pr_notice("fault injection: step %d fails\n", step);
	return true;
}
