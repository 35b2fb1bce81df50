/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How much memory may still be added: by each cgroup (v2), by the machine.
 */
#ifndef MW_LIMITS_H
#define MW_LIMITS_H

#include <stdint.h>

#include <memwatch/ctx.h>

/* Of a cgroup and all above it. */
struct mw_limit {
	uint64_t headroom_bytes;
	uint32_t limit; /* enum memwatch_limit */
};

/* Called for each cgroup that has a limit; not 0 ends the walk and is returned. */
typedef int (*mw_limits_fn)(void *userdata, uint64_t cgroup, const struct mw_limit *limit);

/* Bytes that the machine can still give: available memory and free swap. */
int mw_limits_host_headroom(struct memwatch_ctx *ctx, uint64_t *ret_bytes);

/* Walks the cgroups. Those that vanish meanwhile are left out. */
int mw_limits_walk_cgroups(struct memwatch_ctx *ctx, mw_limits_fn fn, void *userdata);

#endif /* MW_LIMITS_H */
