/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * RDT for one session: whether it may be used, and how it is given up when
 * another user of RDT appears.
 */
#ifndef _MW_RDT_SESSION_H
#define _MW_RDT_SESSION_H

#include <linux/types.h>

void mw_rdt_session_init(u32 rmids);
int mw_rdt_session_arm(void);
void mw_rdt_session_disarm(void);
void mw_rdt_session_review(void);
void mw_rdt_session_give_up(const char *reason);

#endif /* _MW_RDT_SESSION_H */
