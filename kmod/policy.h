/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The policy: when RMIDs change hands although no process starts or ends, and
 * the work that hooks ask for with a kick.
 */
#ifndef _MW_POLICY_H
#define _MW_POLICY_H

#include <linux/types.h>

int mw_policy_init(void);
void mw_policy_uninit(void);
int mw_policy_arm(void);
void mw_policy_disarm(void);
void mw_policy_configure(u32 policy, u64 limbo_ns);
const char *mw_policy_name(u32 policy);
int mw_policy_parse(const char *name);

void mw_policy_filters_changed(void);
void mw_policy_review(void);

#endif /* _MW_POLICY_H */
