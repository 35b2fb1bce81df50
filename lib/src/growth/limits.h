/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The headroom: how much memory each cgroup (version 2) and the machine may still add
 * before a limit is reached.
 */
#ifndef MW_LIMITS_H
#define MW_LIMITS_H

#include <stdint.h>

#include <memwatch/ctx.h>

/**
 * struct mw_limit - the nearest limit of a cgroup or of one of its ancestors
 * @headroom_bytes: bytes that may be added before it is reached
 * @limit: &enum memwatch_limit
 */
struct mw_limit {
	uint64_t headroom_bytes;
	uint32_t limit;
};

/* Called for each cgroup with a limit. A value other than 0 ends the walk and is returned. */
typedef int (*mw_limits_fn)(void *userdata, uint64_t cgroup, const struct mw_limit *limit);

/* Bytes that the machine can still give: available memory and free swap. */
int mw_limits_host_headroom(struct memwatch_ctx *ctx, uint64_t *ret_bytes);

/* Calls @fn for all cgroups with a limit. Cgroups that vanish meanwhile are left out. */
int mw_limits_walk_cgroups(struct memwatch_ctx *ctx, mw_limits_fn fn, void *userdata);

#endif /* MW_LIMITS_H */
