/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * When RMIDs change hands although nobody is born and nobody dies, and all the
 * work that hooks leave to others.
 */
#ifndef _MW_POLICY_H
#define _MW_POLICY_H

#include <linux/jump_label.h>
#include <linux/types.h>

struct mw_process;

/* At most so many promotions in one go: each sends a record under mw_lock. */
#define MW_PROMOTE_MOST 16

/* On while somebody needs mw_process.last_run. */
DECLARE_STATIC_KEY_FALSE(mw_last_run_key);

int mw_policy_init(void);
void mw_policy_uninit(void);
int mw_policy_arm(void);
void mw_policy_disarm(void);
void mw_policy_set(u32 policy, u64 limbo_ns);

/* From hooks. Caller holds mw_lock. */
void mw_policy_waiters(void);
void mw_policy_promoted(void);
void mw_policy_upkeep(void);
bool mw_policy_is_idle(const struct mw_process *p, u32 now);
void mw_policy_review(void);

/* From process context. */
void mw_policy_filters_changed(void);
void mw_policy_review_now(void);
size_t mw_policy_memory(void);

#endif /* _MW_POLICY_H */
