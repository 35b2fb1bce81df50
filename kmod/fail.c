// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Fault injection, see fail.h. The parameters live here because nothing else
 * may look at them.
 */
#include <linux/moduleparam.h>
#include <linux/printk.h>

#include "fail.h"

static uint fail_step;
module_param(fail_step, uint, 0600);
MODULE_PARM_DESC(fail_step, "test: the step that fails, 1 to fail_steps; 0 for none");

static uint fail_steps = MW_FAIL_STEPS;
module_param(fail_steps, uint, 0400);
MODULE_PARM_DESC(fail_steps, "test: how many steps there are");

bool mw_fail(enum mw_fail_step step)
{
	if (likely(READ_ONCE(fail_step) != step))
		return false;
	pr_notice("step %d fails, as asked for\n", step);
	return true;
}
