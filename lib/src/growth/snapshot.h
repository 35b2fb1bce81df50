/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A copy of the map of processes, taken at one time, whose entries have numbers.
 */
#ifndef MW_GROWTH_SNAPSHOT_H
#define MW_GROWTH_SNAPSHOT_H

#include <memwatch/growth.h>

#include "loader/growth.h"

struct mw_snapshot_item {
	struct mw_growth_key key;
	struct mw_growth_process process;
	struct mw_growth_touch touch;
};

/**
 * struct mw_snapshot - the copy; zero is an empty one
 * @items: owned
 * @count: number of items
 * @capacity: how many fit
 */
struct mw_snapshot {
	struct mw_snapshot_item *items;
	size_t count, capacity;
};

/* Replaces the copy. Returns the number of processes or -ENOMEM. */
int mw_snapshot_take(struct memwatch_ctx *ctx, struct mw_snapshot *snapshot,
		     struct mw_bpf_growth *bpf);

/* As memwatch_watch_get_row(); the history is read from @bpf now. */
int mw_snapshot_row(const struct mw_snapshot *snapshot, struct mw_bpf_growth *bpf,
		    unsigned int index, struct memwatch_growth_row *ret);

/* As memwatch_watch_find(): reads one process without a snapshot. */
int mw_snapshot_find(struct mw_bpf_growth *bpf, const struct mw_growth_key *key,
		     struct memwatch_growth_row *ret, __u64 *cgroup);

/* As memwatch_watch_get_sample(). */
int mw_snapshot_sample(const struct mw_snapshot *snapshot, unsigned int index,
		       struct memwatch_growth_sample *ret, __u64 *cgroup);

#endif /* MW_GROWTH_SNAPSHOT_H */
