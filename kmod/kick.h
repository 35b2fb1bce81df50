/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Kicks: requests from hooks for work that a hook must not do itself. The switch
 * hook holds the run queue lock, so it may touch neither a timer nor a work
 * item. It raises a kick, and an irq_work passes the kick to the handler that
 * policy.c registers.
 *
 * Unless a comment says otherwise, the caller of each function holds mw_lock.
 */
#ifndef _MW_KICK_H
#define _MW_KICK_H

#include <linux/bits.h>
#include <linux/types.h>

/**
 * enum mw_kick - the kinds of work, as bits
 * @MW_KICK_PROMOTE: give free RMIDs to waiting processes
 * @MW_KICK_REVOKE: take RMIDs from idle processes, for waiting ones that run
 * @MW_KICK_REFILL: refill the object caches and recycle what was freed
 * @MW_KICK_REVIEW: match all processes against the filters again
 * @MW_KICK_EXPEL: take RMIDs from processes that a filter excludes since they changed
 * @MW_KICK_REFRESH: program the RMID of a process that was promoted while it ran
 */
enum mw_kick {
	MW_KICK_PROMOTE = BIT(0),
	MW_KICK_REVOKE = BIT(1),
	MW_KICK_REFILL = BIT(2),
	MW_KICK_REVIEW = BIT(3),
	MW_KICK_EXPEL = BIT(4),
	MW_KICK_REFRESH = BIT(5),
};

/* Called once, before the first session. @handler runs in hard interrupt context. */
void mw_kick_init(void (*handler)(u32 kicks));

void mw_kick_arm(u32 kicks);
void mw_kick_enable(u32 kicks);
void mw_kick_raise(u32 kick);
void mw_kick_raise_once(u32 kick);
void mw_kick_set_pending(u32 kick, bool on);

/* May be called without mw_lock; the answer may then be out of date. */
bool mw_kick_is_enabled(u32 kick);

/* Takes mw_lock. */
void mw_kick_disarm(void);

#endif /* _MW_KICK_H */
