/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Notices: what an operator wants to be told. Each is said once, to mw_notify(), and
 * reaches the stream as a NOTICE record, those who read netlink, and, if it has a text,
 * the kernel log.
 *
 * The record is sent at once. The rest may sleep, so a worker does it, at a limited rate.
 */
#ifndef _MW_NOTIFY_H
#define _MW_NOTIFY_H

#include <linux/time64.h>
#include <linux/types.h>

int mw_notify_init(void);

/* Nothing calls mw_notify() any more. What waits is sent before this returns. */
void mw_notify_uninit(void);

/**
 * mw_notify - something happened that an operator wants to be told
 * @kind: &enum memwatch_notice
 * @count: see &enum memwatch_notice
 * @value: see &enum memwatch_notice
 * @text: what happened and why, for the log; NULL if that says nothing more
 *
 * In any context but NMI, with any lock, also that of a run queue and mw_lock.
 */
void mw_notify(u32 kind, u64 count, u64 value, const char *text);

/* The same without the record, for what the stream has in a record of another type. */
void mw_notify_readers(u32 kind, u64 count, u64 value);

/* For what may happen very often: at most once a second. @last: when, 0 for never */
static inline bool mw_notify_is_due(u64 *last, u64 now)
{
	if (*last && now - *last < NSEC_PER_SEC)
		return false;
	*last = now;
	return true;
}

#endif /* _MW_NOTIFY_H */
