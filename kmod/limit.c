// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Rate limits, see limit.h. A bucket is stored as one time stamp, @paid_until. A
 * caller must wait while @paid_until is more than @burst intervals in the future.
 * A charge may exceed the tokens that are left; the next caller then waits longer.
 * So the cost of the work need not be known before it is done.
 */
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/lockdep.h>

#include "limit.h"
#include "lock.h"

/* Returns how long the caller must wait; 0 if it need not wait. */
u64 mw_limit_delay(const struct mw_limit *limit)
{
	u64 allowed = ktime_get_ns() + limit->burst * limit->interval_ns;

	lockdep_assert_held(&mw_control_lock);
	return limit->paid_until > allowed ? limit->paid_until - allowed : 0;
}

void mw_limit_charge(struct mw_limit *limit, u32 tokens)
{
	lockdep_assert_held(&mw_control_lock);
	limit->paid_until = max(limit->paid_until, ktime_get_ns()) + tokens * limit->interval_ns;
}
