/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Differences between kernels in linux/hrtimer.h.
 */
#ifndef _MW_COMPAT_HRTIMER_H
#define _MW_COMPAT_HRTIMER_H

#include <linux/hrtimer.h>
#include <compat/config.h>

#ifndef MW_HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

#endif /* _MW_COMPAT_HRTIMER_H */
