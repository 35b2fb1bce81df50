/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The processes of a cgroup of this machine, among which the growth of the cgroup is looked for.
 */
#ifndef MW_GROWTH_MEMBERS_H
#define MW_GROWTH_MEMBERS_H

#include "growth/groups.h"
#include "growth/snapshot.h"
#include "loader/growth.h"

/**
 * struct mw_members - where to look
 * @ctx: context
 * @processes: all processes
 * @bpf: the maps that they are from, with their histories
 * @path: the cgroup; "/" has all processes
 * @legacy: the memory controller is in a hierarchy of version 1
 */
struct mw_members {
	struct memwatch_ctx *ctx;
	const struct mw_snapshot *processes;
	struct mw_bpf_growth *bpf;
	const char *path;
	bool legacy;
};

/* As mw_group_blame_fn. */
bool mw_members_find(const struct mw_members *members, unsigned int class, uint64_t since_ns,
		     uint32_t least, struct mw_group_by *ret);

/* The memory cgroup of a process, from /proc. Returns whether it is known. */
bool mw_members_path(struct memwatch_ctx *ctx, bool legacy, uint32_t tgid, char *path, size_t size);

#endif /* MW_GROWTH_MEMBERS_H */
