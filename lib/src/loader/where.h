/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Loads the programs that sample the stacks of growing processes, and attaches them. Which
 * processes that are is decided by lib/src/growth.
 */
#ifndef MW_LOADER_WHERE_H
#define MW_LOADER_WHERE_H

#include <stdbool.h>
#include <stdint.h>

#include <memwatch/ctx.h>

#include "bpf/where.h"

struct mw_bpf_where;

/*
 * Loads the programs. Returns -EOPNOTSUPP if this is not an x86-64. Without the programs for
 * brk() and mmap() the others are used, and a message says so.
 */
int mw_bpf_where_open(struct memwatch_ctx *ctx, struct mw_bpf_where **ret);
void mw_bpf_where_close(struct mw_bpf_where *where);

/* Attaches the programs: from now on one in @period page faults of the machine is sampled. */
int mw_bpf_where_attach(struct mw_bpf_where *where, uint64_t period);
void mw_bpf_where_detach(struct mw_bpf_where *where);
bool mw_bpf_where_is_attached(const struct mw_bpf_where *where);

void mw_bpf_where_set_period(struct mw_bpf_where *where, uint64_t period);

/* How many page faults were counted off since the programs were loaded, of all processes. */
uint64_t mw_bpf_where_faults(const struct mw_bpf_where *where);

/* Samples process @key, which gets the free place @slot. */
int mw_bpf_where_put(struct mw_bpf_where *where, uint32_t slot, const struct mw_growth_key *key);
void mw_bpf_where_delete(struct mw_bpf_where *where, uint32_t slot,
			 const struct mw_growth_key *key);

/*
 * Copies the samples of a process to @ret, which has room for MW_WHERE_MAX: the pages first. The
 * numbers by kind are in @counts.
 */
int mw_bpf_where_get(struct mw_bpf_where *where, uint32_t slot, struct mw_where_sample *ret,
		     uint32_t counts[MW_WHERE_KINDS]);

#endif /* MW_LOADER_WHERE_H */
