/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Rate limits for what costs the whole machine, or other sessions, more than its
 * caller: starting, dumping, changing what runs.
 */
#ifndef _MW_LIMIT_H
#define _MW_LIMIT_H

#include <linux/types.h>

/**
 * struct mw_limit - a token bucket. Guarded by mw_control_lock.
 * @interval_ns: time in which one token is added
 * @burst: tokens that a full bucket has
 * @paid_until: when all tokens that were taken will have been added again
 */
struct mw_limit {
	u64 interval_ns;
	u32 burst;
	u64 paid_until;
};

u64 mw_limit_delay(const struct mw_limit *limit);
void mw_limit_charge(struct mw_limit *limit, u32 tokens);

#endif /* _MW_LIMIT_H */
