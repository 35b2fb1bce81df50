/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Samples the stacks of suspects, the processes with a notice, that have no heap profile. The
 * programs are attached while there is one, and sample as few page faults of the machine as
 * are needed.
 */
#ifndef MW_GROWTH_STACKS_H
#define MW_GROWTH_STACKS_H

#include <memwatch/watch.h>

#include "loader/growth.h"
#include "loader/where.h"
#include "where/search.h"

/**
 * struct mw_stacks_follow - a suspect
 * @key: the process
 * @pidfd: the process; -1: this place is free
 * @placed: its stacks are sampled, and not only will be
 * @since_ns: when it became a suspect
 */
struct mw_stacks_follow {
	struct mw_growth_key key;
	int pidfd;
	bool placed;
	uint64_t since_ns;
};

/**
 * struct mw_stacks - whose stacks are sampled, and how many
 * @ctx: context, not owned
 * @bpf: the programs; NULL if that is not wanted or not possible; owned
 * @state: &enum memwatch_watch_where_state
 * @error: errno that made it impossible
 * @next_ns: when there is something to do; MW_TIME_MAX: there is no suspect
 * @checked_ns: when it was adapted last
 * @faults: page faults that had been looked at then
 * @period: one in so many page faults is looked at
 * @follow: the suspects
 */
struct mw_stacks {
	struct memwatch_ctx *ctx;
	struct mw_bpf_where *bpf;
	uint32_t state;
	int error;
	uint64_t next_ns;
	uint64_t checked_ns;
	uint64_t faults;
	uint64_t period;
	struct mw_stacks_follow follow[MW_GROWTH_SUSPECTS];
};

void mw_stacks_init(struct mw_stacks *stacks, struct memwatch_ctx *ctx, bool wanted);
void mw_stacks_uninit(struct mw_stacks *stacks);

/*
 * Loads the programs, if that is wanted. It takes too long to be done when a process grows. If it
 * is not possible, a warning is logged and nothing is sampled.
 */
int mw_stacks_open(struct mw_stacks *stacks);

/* Samples a process from soon on; does nothing if it has a heap profile or there is no place. */
void mw_stacks_begin(struct mw_stacks *stacks, const struct mw_growth_key *key, uint64_t now_ns);
void mw_stacks_end(struct mw_stacks *stacks, const struct mw_growth_key *key);

/* If it is due: forgets processes that have ended, begins with new ones, and adapts the rate. */
void mw_stacks_run(struct mw_stacks *stacks, uint64_t now_ns);

/* Copies the samples of a process. Returns 0, -ENODATA if there are none, or a negative errno. */
int mw_stacks_get(struct mw_stacks *stacks, const struct mw_growth_key *key,
		  struct mw_where_samples *ret);

uint32_t mw_stacks_count(const struct mw_stacks *stacks);

/* Sets the members where_* of the statistics. */
void mw_stacks_get_stats(const struct mw_stacks *stacks, struct memwatch_watch_stats *stats);

#endif /* MW_GROWTH_STACKS_H */
