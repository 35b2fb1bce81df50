/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Finds out what suspects, the processes with a notice, do not touch any more. Every ten seconds a
 * visit reads the accessed bits of a sample of their pages, then clears those of the pages that
 * were gained since the notice. The result goes to the detectors. A visit goes from one suspect to
 * the next with pauses between them: the monitor may have real-time priority, and then no process
 * of its CPU runs meanwhile.
 */
#ifndef MW_GROWTH_TOUCH_H
#define MW_GROWTH_TOUCH_H

#include <memwatch/watch.h>

#include "growth/cohort.h"
#include "loader/growth.h"
#include "loader/touch.h"

/**
 * struct mw_touch_follow - a suspect
 * @key: the process
 * @pidfd: the process; -1: this place is free
 * @placed: the program knows of it
 * @visited: this visit has found it
 * @cohort: its pages
 */
struct mw_touch_follow {
	struct mw_growth_key key;
	int pidfd;
	bool placed;
	bool visited;
	struct mw_cohort cohort;
};

/**
 * struct mw_touch - what is done about suspects
 * @ctx: context, not owned
 * @growth: where the results go, not owned
 * @bpf: reads the pages; NULL if that is not wanted or not possible; owned
 * @state: &enum memwatch_watch_touch
 * @error: errno that made it impossible
 * @max: how many suspects there can be
 * @visiting: a visit has begun
 * @again: another visit must follow at once, because of a suspect that is to be sampled more
 * coarsely
 * @next_ns: when the next suspect is to be visited; MW_TIME_MAX: there is none
 * @begun_ns: when the last visit began
 * @spent_ns: CPU time of it
 * @rested_ns: from when on the budget allows another visit
 * @visits: number of visits
 * @cpu_ns: CPU time of all of them
 * @stall_ns: longest call that held the lock of a suspect's address space
 * @follow: the suspects, of which the first @max are used
 * @clear: pages that are being cleared
 */
struct mw_touch {
	struct memwatch_ctx *ctx;
	struct mw_bpf_growth *growth;
	struct mw_bpf_touch *bpf;
	uint32_t state;
	int error;
	uint32_t max;
	bool visiting;
	bool again;
	uint64_t next_ns;
	uint64_t begun_ns;
	uint64_t spent_ns;
	uint64_t rested_ns;
	uint64_t visits;
	uint64_t cpu_ns;
	uint64_t stall_ns;
	struct mw_touch_follow follow[MW_GROWTH_SUSPECTS_MAX];
	__u64 clear[MW_TOUCH_PAGES];
};

/* @max: how many suspects there can be, at most MW_GROWTH_SUSPECTS_MAX; 0: the default. */
void mw_touch_init(struct mw_touch *touch, struct memwatch_ctx *ctx, struct mw_bpf_growth *growth,
		   uint32_t max, bool wanted);
void mw_touch_uninit(struct mw_touch *touch);

/*
 * Loads the program that reads page tables, if that is wanted. It takes too long to be done when
 * a process grows. If it is not possible, a warning is logged and nothing is followed.
 */
int mw_touch_open(struct mw_touch *touch);

/* Follows a process from its notice on, and no longer than that holds. */
void mw_touch_note(struct mw_touch *touch, const struct memwatch_record_growth *record,
		   uint64_t now_ns);

/* The same by the state of the process, if a record of it was lost or there was no place. */
void mw_touch_check(struct mw_touch *touch, const struct mw_growth_key *key,
		    const struct mw_growth *g, uint64_t now_ns);

/* Visits the next suspect if that is due. Returns the CPU time it took. */
uint64_t mw_touch_run(struct mw_touch *touch, uint64_t now_ns);

/* Number of suspects. */
uint32_t mw_touch_count(const struct mw_touch *touch);

/* Sets the members touch_* of the statistics. */
void mw_touch_get_stats(const struct mw_touch *touch, struct memwatch_watch_stats *stats);

#endif /* MW_GROWTH_TOUCH_H */
