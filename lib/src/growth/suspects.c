// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What is found out about suspects.
 */
#include "growth/suspects.h"

#include "base/timemath.h"

void mw_suspects_open(struct mw_suspects *suspects, struct memwatch_ctx *ctx,
		      struct mw_bpf_growth *growth, uint32_t max, uint32_t flags)
{
	mw_touch_init(&suspects->touch, ctx, growth, max, !(flags & MEMWATCH_WATCH_NO_TOUCH));
	mw_touch_open(&suspects->touch);
	mw_stacks_init(&suspects->stacks, ctx, !(flags & MEMWATCH_WATCH_NO_WHERE));
	mw_stacks_open(&suspects->stacks);
}

void mw_suspects_close(struct mw_suspects *suspects)
{
	mw_touch_uninit(&suspects->touch);
	mw_stacks_uninit(&suspects->stacks);
}

void mw_suspects_note(struct mw_suspects *suspects, const struct memwatch_record_growth *record,
		      uint64_t now_ns)
{
	struct mw_growth_key key = { .start_ns = record->start_time_ns, .tgid = record->tgid };

	mw_touch_note(&suspects->touch, record, now_ns);
	/* The stacks of before an exec are those of another program. */
	if (record->what == MEMWATCH_GROWTH_NOTICED || record->what == MEMWATCH_GROWTH_SETTLED)
		mw_stacks_end(&suspects->stacks, &key);
	if (record->what == MEMWATCH_GROWTH_NOTICED)
		mw_stacks_begin(&suspects->stacks, &key, now_ns);
}

void mw_suspects_check(struct mw_suspects *suspects, const struct mw_growth_key *key,
		       const struct mw_growth *g, uint64_t now_ns)
{
	mw_touch_check(&suspects->touch, key, g, now_ns);
	if (g->flags & MW_GROWTH_F_NOTICE)
		mw_stacks_begin(&suspects->stacks, key, now_ns);
	else
		mw_stacks_end(&suspects->stacks, key);
}

uint64_t mw_suspects_next(const struct mw_suspects *suspects)
{
	return mw_min_u64(suspects->touch.next_ns, suspects->stacks.next_ns);
}

uint64_t mw_suspects_run(struct mw_suspects *suspects, uint64_t now_ns)
{
	mw_stacks_run(&suspects->stacks, now_ns);
	return mw_touch_run(&suspects->touch, now_ns);
}

void mw_suspects_get_stats(const struct mw_suspects *suspects, struct memwatch_watch_stats *stats)
{
	mw_touch_get_stats(&suspects->touch, stats);
	mw_stacks_get_stats(&suspects->stacks, stats);
}
