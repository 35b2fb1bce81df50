// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The notices of one kind that wait to be sent, see backlog.h.
 */
#include "backlog.h"

static u32 backlog_slot(const struct mw_backlog *backlog, u32 i)
{
	return (backlog->first + i) % MW_BACKLOG_MAX;
}

bool mw_backlog_put(struct mw_backlog *backlog, const struct mw_notice *notice)
{
	bool was_empty = !backlog->nr;
	struct mw_notice *last;
	u64 suppressed;

	if (backlog->nr < MW_BACKLOG_MAX) {
		backlog->waiting[backlog_slot(backlog, backlog->nr++)] = *notice;
		return was_empty;
	}
	last = &backlog->waiting[backlog_slot(backlog, backlog->nr - 1)];
	suppressed = last->suppressed + 1;
	*last = *notice;
	last->suppressed = suppressed;
	return false;
}

u64 mw_backlog_due(const struct mw_backlog *backlog)
{
	if (!backlog->nr)
		return MW_BACKLOG_NEVER;
	if (backlog->sent < MW_BACKLOG_MAX)
		return 0;
	return backlog->sent_ns[backlog->sent % MW_BACKLOG_MAX] + MW_BACKLOG_SECOND_NS;
}

bool mw_backlog_take(struct mw_backlog *backlog, u64 now, struct mw_notice *notice)
{
	if (!backlog->nr || now < mw_backlog_due(backlog))
		return false;
	*notice = backlog->waiting[backlog->first];
	backlog->first = backlog_slot(backlog, 1);
	backlog->nr--;
	backlog->sent_ns[backlog->sent++ % MW_BACKLOG_MAX] = now;
	return true;
}

bool mw_backlog_take_all(struct mw_backlog *backlog, struct mw_notice *notice)
{
	u64 others = 0;
	u32 i;

	if (!backlog->nr)
		return false;
	for (i = 0; i < backlog->nr; i++)
		others += backlog->waiting[backlog_slot(backlog, i)].suppressed + 1;
	*notice = backlog->waiting[backlog_slot(backlog, backlog->nr - 1)];
	notice->suppressed = others - 1;
	backlog->nr = 0;
	return true;
}
