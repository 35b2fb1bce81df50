/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * 908a1d775422 ("hrtimers: Introduce hrtimer_setup() to replace
 * hrtimer_init()"), 6.13; hrtimer_init() was removed in 6.15. Delete when the
 * oldest supported kernel is 6.13 or newer.
 */
#include <linux/hrtimer.h>

void mw_probe(struct hrtimer *timer, enum hrtimer_restart (*function)(struct hrtimer *));
void mw_probe(struct hrtimer *timer, enum hrtimer_restart (*function)(struct hrtimer *))
{
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
}
