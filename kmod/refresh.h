/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * When a process gets or loses an RMID, the CPUs that run it at this moment must
 * program another one; what switches later programs it anyway. Only these CPUs
 * are interrupted, because others may be isolated for work that must not be
 * disturbed, or sleep.
 *
 * How they are found: the switch hook runs with interrupts off, so after a grace
 * period of RCU each hook that could read the owner as it was before has ended.
 * What it switched to is on its CPU, and mw_cpu.owner says what it programmed.
 *
 * Called by the workers of the policy and by a dump, which may sleep.
 */
#ifndef _MW_REFRESH_H
#define _MW_REFRESH_H

#include "owner.h"

void mw_refresh_retired(const struct mw_retire *batch);
void mw_refresh_promoted(void);
void mw_refresh_note_running(void);
void mw_refresh_ask_unticked(void);

#endif /* _MW_REFRESH_H */
