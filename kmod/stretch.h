/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A period that lengthens itself: if ticks take more than tick_max_percent of the time of
 * a CPU, the period is doubled, for all CPUs because all have the same slots. It is not
 * shortened again before the session ends or its period is set anew: the cost would only
 * rise again, and so would the period, back and forth.
 */
#ifndef _MW_STRETCH_H
#define _MW_STRETCH_H

#include <linux/types.h>

#define MW_STRETCH_REASON_LEN 96

int mw_stretch_init(void);
void mw_stretch_disarm(void);

/* Ticks of this CPU cost too much. Called in a tick. */
void mw_stretch_raise(void);

/* The limit in millionths; 0, there is none. */
u32 mw_stretch_max_ppm(void);

/* Caller holds mw_control_lock. */
void mw_stretch_describe(char *reason);

#endif /* _MW_STRETCH_H */
