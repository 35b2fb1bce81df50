/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Others who use RDT, and what else ends our use of it in mid-session.
 */
#ifndef _MW_CONFLICT_H
#define _MW_CONFLICT_H

void mw_conflict_arm(void);
void mw_conflict_disarm(void);

#endif /* _MW_CONFLICT_H */
