/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What is found out about suspects, the processes with a notice: what they do not touch any more,
 * and where they take their memory.
 */
#ifndef MW_GROWTH_SUSPECTS_H
#define MW_GROWTH_SUSPECTS_H

#include "growth/stacks.h"
#include "growth/touch.h"

struct mw_suspects {
	struct mw_touch touch;
	struct mw_stacks stacks;
};

/* Of a monitor. */
struct mw_suspects *mw_watch_suspects(struct memwatch_watch *watch);

/* @max: how many suspects are followed; 0: the default. @flags: MEMWATCH_WATCH_*. What is not
 * possible is logged, and is not done. */
void mw_suspects_open(struct mw_suspects *suspects, struct memwatch_ctx *ctx,
		      struct mw_bpf_growth *growth, uint32_t max, uint32_t flags);
void mw_suspects_close(struct mw_suspects *suspects);

/* A process is a suspect from its notice on, and no longer than that holds. */
void mw_suspects_note(struct mw_suspects *suspects, const struct memwatch_record_growth *record,
		      uint64_t now_ns);

/* The same by the state of the process, if a record of it was lost or there was no place. */
void mw_suspects_check(struct mw_suspects *suspects, const struct mw_growth_key *key,
		       const struct mw_growth *g, uint64_t now_ns);

/* When mw_suspects_run() has something to do. */
uint64_t mw_suspects_next(const struct mw_suspects *suspects);

/* Does what is due. Returns the CPU time of what has a budget of its own. */
uint64_t mw_suspects_run(struct mw_suspects *suspects, uint64_t now_ns);

/* Sets the members touch_* and where_* of the statistics. */
void mw_suspects_get_stats(const struct mw_suspects *suspects, struct memwatch_watch_stats *stats);

#endif /* MW_GROWTH_SUSPECTS_H */
