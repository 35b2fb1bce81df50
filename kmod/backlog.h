/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The notices of one kind that wait to be sent, and when the next one may be: so that no
 * more than MEMWATCH_NOTICES_PER_SECOND are sent within any second. If more wait, the last
 * one is replaced, and the new one says how many it stands for. This file uses no lock and
 * no clock. It is also built in user space, where it is tested.
 */
#ifndef _MW_BACKLOG_H
#define _MW_BACKLOG_H

#include <linux/memwatch.h>

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stdint.h>
typedef uint64_t u64;
typedef uint32_t u32;
#endif

#define MW_BACKLOG_MAX MEMWATCH_NOTICES_PER_SECOND

/* mw_backlog_due(): nothing waits */
#define MW_BACKLOG_NEVER     (~0ULL)

#define MW_BACKLOG_SECOND_NS 1000000000ULL

/**
 * struct mw_notice - a notice, see &enum memwatch_genl_attr
 * @time_ns: when it happened
 * @count: see &enum memwatch_notice
 * @value: see &enum memwatch_notice
 * @suppressed: notices that were replaced by this one
 * @kind: &enum memwatch_notice
 * @cpu: where it happened
 * @text: what happened, "" if the other members say it all
 */
struct mw_notice {
	u64 time_ns;
	u64 count;
	u64 value;
	u64 suppressed;
	u32 kind;
	u32 cpu;
	char text[MEMWATCH_NOTICE_TEXT_LEN];
};

/**
 * struct mw_backlog - notices of one kind; all zero at the beginning
 * @waiting: a ring of notices, @nr of them from @first on
 * @first: the oldest one
 * @nr: how many wait
 * @sent: notices that were taken so far
 * @sent_ns: when the last ones of them were taken
 */
struct mw_backlog {
	struct mw_notice waiting[MW_BACKLOG_MAX];
	u32 first;
	u32 nr;
	u64 sent;
	u64 sent_ns[MW_BACKLOG_MAX];
};

/* Returns whether nothing waited before. */
bool mw_backlog_put(struct mw_backlog *backlog, const struct mw_notice *notice);

/* When the oldest notice may be sent. */
u64 mw_backlog_due(const struct mw_backlog *backlog);

/* Takes the oldest notice. False if it may not be sent yet, or there is none. */
bool mw_backlog_take(struct mw_backlog *backlog, u64 now, struct mw_notice *notice);

/* Takes all notices as one, whatever the rate. False if there is none. */
bool mw_backlog_take_all(struct mw_backlog *backlog, struct mw_notice *notice);

#endif /* _MW_BACKLOG_H */
