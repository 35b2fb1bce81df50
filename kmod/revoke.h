/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Taking RMIDs from living processes, for others that run and wait.
 */
#ifndef _MW_REVOKE_H
#define _MW_REVOKE_H

#include "owner.h"

int mw_revoke_arm(void);
void mw_revoke_disarm(void);
size_t mw_revoke_memory(void);

/* These may sleep; the caller does not hold mw_lock. */
void mw_revoke_pass(void);
void mw_revoke_finish(struct mw_retire *batch);

#endif /* _MW_REVOKE_H */
