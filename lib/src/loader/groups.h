/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Loads the BPF program that reads the memory of cgroups, and runs it. When it runs and what
 * follows from its numbers is decided by lib/src/growth.
 */
#ifndef MW_BPF_GROUPS_H
#define MW_BPF_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include <memwatch/ctx.h>

#include "loader/map-walk.h"

#include "bpf/groups-maps.h"

struct mw_bpf_groups;

int mw_bpf_groups_open(struct memwatch_ctx *ctx, struct mw_bpf_groups **ret);
void mw_bpf_groups_close(struct mw_bpf_groups *groups);

/* Reads all cgroups. @swap is the free swap of the machine, in its pages. */
int mw_bpf_groups_round(struct mw_bpf_groups *groups, uint32_t swap);

/* From now on, only the sums are read whose positions are the same in every kernel. */
void mw_bpf_groups_set_unsure(struct mw_bpf_groups *groups);

/* The number of the last round, which is in each value that it wrote. */
uint32_t mw_bpf_groups_number(const struct mw_bpf_groups *groups);

/* Were there more than MW_GROUPS_MAX cgroups in the last round? */
bool mw_bpf_groups_are_full(struct mw_bpf_groups *groups);

/* Passes each cgroup (its id, &struct mw_group_memory) to @fn, as mw_bpf_map_walk() does. */
int mw_bpf_groups_each(struct mw_bpf_groups *groups, mw_bpf_walk_fn fn, void *userdata);

void mw_bpf_groups_delete(struct mw_bpf_groups *groups, uint64_t id);

#endif /* MW_BPF_GROUPS_H */
