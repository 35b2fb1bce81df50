// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * memwatch_watch_where() of <memwatch/where.h>.
 */
#include <memwatch/where.h>

#include <stdlib.h>

#include "base/context.h"
#include "growth/suspects.h"

int memwatch_watch_where(struct memwatch_watch *watch, __u32 tgid, __u64 start_time_ns,
			 struct memwatch_where **ret)
{
	struct mw_growth_key key = { .start_ns = start_time_ns, .tgid = tgid };
	struct mw_stacks *stacks = &mw_watch_suspects(watch)->stacks;
	struct mw_where_samples *samples = malloc(sizeof(*samples));
	int err;

	if (!samples)
		return mw_fail_memory(stacks->ctx, "stacks");
	err = mw_stacks_get(stacks, &key, samples);
	if (!err)
		err = mw_where_search_new(stacks->ctx, tgid, samples, ret);
	free(samples);
	return err;
}
