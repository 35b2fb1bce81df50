/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What ends the use of RDT during a session: other users of it, and CPUs with
 * fewer RMIDs.
 */
#ifndef _MW_CONFLICT_H
#define _MW_CONFLICT_H

void mw_conflict_arm(void);
void mw_conflict_disarm(void);

/* In a tick. */
void mw_conflict_raise(void);

#endif /* _MW_CONFLICT_H */
