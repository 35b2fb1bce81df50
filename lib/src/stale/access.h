/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Access samples of a process: which memory it uses, from perf events with data addresses.
 *
 * USE. Fork a child that waits before it executes its program, then
 *
 *	mw_access_find(ctx, "auto", &plan);          which events there are, or why there are none
 *	mw_access_open(ctx, &plan, pid, &opts, &access);
 *	let the child execute its program: sampling begins
 *	do {
 *		mw_access_wait(access, 100);
 *		while (mw_access_next(access, &item))
 *			use the item, for example with mw_access_text_line()
 *	} while (!mw_access_ended(access));
 *	mw_access_get_stats(access, &stats);
 *	mw_access_close(access);
 *	mw_access_plan_uninit(&plan);
 *
 * The process, the threads and processes that it makes, and what they execute are sampled until the
 * last of them has ended. Addresses belong to the address space of item.pid between two items EXEC
 * of it.
 *
 * ORDER. Items of one CPU are in the order of time, but for some that an interrupt writes. Items of
 * different CPUs are in no order.
 *
 * PERIODS. Periods vary at random, see access-period.h. The kernel can change the period of
 * the event that was opened only, and not those of the events that threads have inherited from it.
 * It hands the former from thread to thread at context switches (perf_event_context_sched_out()),
 * so a new period holds for one running thread. The others keep the period that there was when
 * they were made; it is a different one for each CPU.
 *
 * WHAT IS NOT SAMPLED. CPUs that come online later. Where it is not permitted to sample the kernel
 * (stats.user_only), accesses that system calls make for the process.
 */
#ifndef MW_STALE_ACCESS_H
#define MW_STALE_ACCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <memwatch/ctx.h>

#include "stale/access-find.h"
#include "stale/access-period.h"
#include "stale/access-ring.h"

struct mw_access;

/**
 * struct mw_access_opts - options; all members may be 0
 * @period: mean number of accesses (with IBS: operations) between two samples of a thread;
 *	default: that of the event; at most MW_ACCESS_PERIOD_MAX; page faults are all recorded
 * @pages: pages of each ring, a power of two; default 128, which is what
 *	kernel.perf_event_mlock_kb allows every user
 * @seed: of the random periods; default: a random number
 */
struct mw_access_opts {
	uint64_t period;
	uint32_t pages;
	uint64_t seed;
};

/**
 * struct mw_access_stats - what was sampled, and what is missing
 * @counts: sums of all rings. counts.lost is what the kernel says, if it counts losses; a ring says
 *	it only with the next record that fits.
 * @rings: number of CPUs
 * @rearmed: how often a new random period was set
 * @user_only: accesses by the kernel on behalf of the process were not sampled
 */
struct mw_access_stats {
	struct mw_access_counts counts;
	unsigned int rings;
	uint64_t rearmed;
	bool user_only;
};

/*
 * Opens @plan for the process @pid, which has not executed its program yet. @plan must stay valid.
 * Returns:
 *	0
 *	-EACCES		not permitted
 *	-EOPNOTSUPP	the kernel or the PMU refuses the events
 *	-EINVAL		@opts are wrong
 *	any other errno of perf_event_open() and mmap()
 * The error text of @ctx says what is missing.
 */
int mw_access_open(struct memwatch_ctx *ctx, const struct mw_access_plan *plan, pid_t pid,
		   const struct mw_access_opts *opts, struct mw_access **ret);

/* Accepts NULL. */
void mw_access_close(struct mw_access *access);

/*
 * Waits until a ring is a quarter full, all processes have ended, or @timeout_ms has passed.
 * Returns 1, 1, 0, or -EINTR. What is below a quarter can be read at any time.
 */
int mw_access_wait(struct mw_access *access, int timeout_ms);

/* A descriptor that becomes readable when mw_access_wait() would return 1. */
int mw_access_fd(const struct mw_access *access);

/* Takes the next item. Returns 1, or 0 if there is no more at present. */
int mw_access_next(struct mw_access *access, struct mw_access_item *item);

/* Whether all processes have ended, as mw_access_wait() has noticed, and all items were taken. */
bool mw_access_ended(const struct mw_access *access);

void mw_access_get_stats(const struct mw_access *access, struct mw_access_stats *ret);

#endif /* MW_STALE_ACCESS_H */
