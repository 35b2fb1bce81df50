// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The time in which a row may have run.
 */
#include "account/row-life.h"

#include "base/timemath.h"

void mw_row_life_extend(struct mw_row_life *life, uint64_t begin_ns, uint64_t end_ns)
{
	if (!life->end_ns || begin_ns < life->begin_ns)
		life->begin_ns = begin_ns;
	if (begin_ns >= life->latest_ns) {
		life->latest_ns = begin_ns;
		life->end_ns = end_ns;
	}
}

void mw_row_life_follow(struct mw_row_life *life, const struct memwatch_process *process)
{
	mw_row_life_extend(life, process->alloc_time_ns,
			   process->flags & MEMWATCH_PROCESS_FREED ? process->free_time_ns
								   : MW_TIME_MAX);
}
