/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The memory of the machine by class, from /proc/meminfo and /proc/net/sockstat.
 */
#ifndef MW_GROWTH_HOST_H
#define MW_GROWTH_HOST_H

#include "growth/groups.h"

/* Fills in all but the time, and the free swap. Returns 0 or a negative errno. */
int mw_host_sample(struct memwatch_ctx *ctx, struct mw_group_sample *ret, uint64_t *swap_bytes);

#endif /* MW_GROWTH_HOST_H */
