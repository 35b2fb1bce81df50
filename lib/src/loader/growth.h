/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Loads and attaches the BPF programs of the growth monitor, runs rounds, reads and writes
 * their maps, and opens a ring for each online CPU, which are put into a merge. When a
 * round is due is decided by lib/src/growth.
 */
#ifndef MW_BPF_GROWTH_H
#define MW_BPF_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

#include <memwatch/ctx.h>

#include "loader/map-walk.h"
#include "merge/merge.h"

#include "bpf/growth-maps.h"

struct mw_bpf_growth;

/* Opens the rings in @merge, which must outlive the object. */
int mw_bpf_growth_open(struct memwatch_ctx *ctx, uint32_t max_processes, struct mw_merge *merge,
		       struct mw_bpf_growth **ret);
void mw_bpf_growth_close(struct mw_bpf_growth *growth);

/* The settings of the programs, in a shared page: they may be written at any time. */
volatile struct mw_growth_control *mw_bpf_growth_control(struct mw_bpf_growth *growth);

/* Opens rings for new CPUs. Call it before a round, so that its records find a ring. */
void mw_bpf_growth_refresh(struct mw_bpf_growth *growth);

/* Runs one round over all tasks. */
int mw_bpf_growth_round(struct mw_bpf_growth *growth);

/* Attaches and detaches the event program. After detaching it does not run any more. */
int mw_bpf_growth_attach_events(struct mw_bpf_growth *growth);
void mw_bpf_growth_detach_events(struct mw_bpf_growth *growth);

/* The initial &struct mw_growth_control.width for this kernel. */
uint32_t mw_bpf_growth_width(void);

/**
 * struct mw_event_runs - runs of the event program on all CPUs
 * @all: how often it has run
 * @timed: how many of these runs were timed
 * @timed_ns: how long these took
 */
struct mw_event_runs {
	uint64_t all;
	uint64_t timed;
	uint64_t timed_ns;
};

void mw_bpf_growth_event_runs(struct mw_bpf_growth *growth, struct mw_event_runs *ret);

/* The value of a counter, summed over all CPUs. */
uint64_t mw_bpf_growth_count(struct mw_bpf_growth *growth, enum mw_growth_count what);

/*
 * Pass each process (&struct mw_growth_process) or each user with states (&struct
 * mw_growth_owner) to @fn, as mw_bpf_map_walk() does.
 */
int mw_bpf_growth_each(struct mw_bpf_growth *growth, mw_bpf_walk_fn fn, void *userdata);
int mw_bpf_growth_each_owner(struct mw_bpf_growth *growth, mw_bpf_walk_fn fn, void *userdata);

/* Write and delete the numbers of a user, between two rounds. */
int mw_bpf_growth_put_owner(struct mw_bpf_growth *growth, uint32_t uid,
			    const struct mw_growth_owner *owner);
void mw_bpf_growth_delete_owner(struct mw_bpf_growth *growth, uint32_t uid);

/* Reads the state of a process. Returns 1, or 0 if it has none. */
int mw_bpf_growth_get(struct mw_bpf_growth *growth, const struct mw_growth_key *key,
		      struct mw_growth_process *process);

/* Reads the history of a process. Returns 1, or 0 if it has none. */
int mw_bpf_growth_history(struct mw_bpf_growth *growth, const struct mw_growth_key *key,
			  struct mw_growth_history *history);

/* Writes the state of a process, and its history unless NULL. */
int mw_bpf_growth_put(struct mw_bpf_growth *growth, const struct mw_growth_key *key,
		      const struct mw_growth_process *process,
		      const struct mw_growth_history *history);
void mw_bpf_growth_delete(struct mw_bpf_growth *growth, const struct mw_growth_key *key);

/* Reads what the iterator was told of the pages of a process; leaves @pages alone if nothing. */
void mw_bpf_growth_get_touch(struct mw_bpf_growth *growth, const struct mw_growth_key *key,
			     struct mw_growth_touch *pages);

/* Tells the iterator what is known of the pages of a process; with NULL, nothing any more. */
int mw_bpf_growth_put_touch(struct mw_bpf_growth *growth, const struct mw_growth_key *key,
			    const struct mw_growth_touch *pages);

/* Waits for a record. Returns 1, 0 on timeout, or -EINTR. */
int mw_bpf_growth_wait(struct mw_bpf_growth *growth, int timeout_ms);

/* The descriptor of the rings, see mw_bpf_rings_fd(). */
int mw_bpf_growth_fd(const struct mw_bpf_growth *growth);

#endif /* MW_BPF_GROWTH_H */
