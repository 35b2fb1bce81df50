// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Fault injection, see fail.h. The parameters are static here, because no other
 * code may depend on them.
 */
#include <linux/moduleparam.h>
#include <linux/printk.h>

#include "fail.h"

static uint fail_step;
module_param(fail_step, uint, 0600);
MODULE_PARM_DESC(fail_step, "for tests: the step that fails, 1 to fail_steps; 0 for none");

static uint fail_steps = MW_FAIL_STEPS;
module_param(fail_steps, uint, 0400);
MODULE_PARM_DESC(fail_steps, "for tests: the number of steps");

bool mw_fail(enum mw_fail_step step)
{
	if (likely(READ_ONCE(fail_step) != step))
		return false;
	pr_notice("fault injection: step %d fails\n", step);
	return true;
}
