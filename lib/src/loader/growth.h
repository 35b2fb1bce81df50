/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth programs as the library sees them: load, attach, run a round, read
 * the maps, and a ring for each CPU that is online, in a merge of their own.
 * When a round is due is not decided here.
 */
#ifndef MW_BPF_GROWTH_H
#define MW_BPF_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

#include <memwatch/ctx.h>

#include "merge/merge.h"

#include "bpf/growth-maps.h"

struct mw_bpf_growth;

int mw_bpf_growth_open(struct memwatch_ctx *ctx, uint32_t max_processes, struct mw_merge *merge,
		       struct mw_bpf_growth **ret);
void mw_bpf_growth_close(struct mw_bpf_growth *growth);

/* What the programs go by; written at any time. */
volatile struct mw_growth_control *mw_bpf_growth_control(struct mw_bpf_growth *growth);

/* Looks which CPUs came and went: before a round, so that what it sends finds a ring. */
void mw_bpf_growth_refresh(struct mw_bpf_growth *growth);

/* One round over all tasks. */
int mw_bpf_growth_round(struct mw_bpf_growth *growth);

/* The event program on and off. Once it is off it does not run any more. */
int mw_bpf_growth_attach_events(struct mw_bpf_growth *growth);
void mw_bpf_growth_detach_events(struct mw_bpf_growth *growth);

/* What it waits for before it looks, see struct mw_growth_control. */
uint32_t mw_bpf_growth_width(struct mw_bpf_growth *growth);

/* Run time of the event program, while statistics are switched on. */
uint64_t mw_bpf_growth_event_ns(struct mw_bpf_growth *growth);

/* Sum over all CPUs. */
uint64_t mw_bpf_growth_count(struct mw_bpf_growth *growth, enum mw_growth_count what);

int mw_bpf_growth_set_limit(struct mw_bpf_growth *growth, uint64_t cgroup,
			    const struct mw_growth_limit *bound);
/* All of them. */
void mw_bpf_growth_forget_limits(struct mw_bpf_growth *growth);

/* The process after @key (NULL: the first): 1, or 0 at the end. */
int mw_bpf_growth_next(struct mw_bpf_growth *growth, const struct mw_growth_key *key,
		       struct mw_growth_key *next, struct mw_growth_process *process);
/* Its history: 1, or 0 without one. */
int mw_bpf_growth_history(struct mw_bpf_growth *growth, const struct mw_growth_key *key,
			  struct mw_growth_history *history);
int mw_bpf_growth_put(struct mw_bpf_growth *growth, const struct mw_growth_key *key,
		      const struct mw_growth_process *process,
		      const struct mw_growth_history *history);
void mw_bpf_growth_delete(struct mw_bpf_growth *growth, const struct mw_growth_key *key);

/* Waits for a record or until time is up: 1, 0, or -EINTR. */
int mw_bpf_growth_wait(struct mw_bpf_growth *growth, int timeout_ms);

#endif /* MW_BPF_GROWTH_H */
