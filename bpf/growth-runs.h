/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The event program counts its runs and times some of them. BPF programs only.
 */
#ifndef _MW_GROWTH_RUNS_H
#define _MW_GROWTH_RUNS_H

#include "growth-maps.h"

/*
 * One in so many runs of the event program is timed, on each CPU. The number is prime: the runs
 * that examine a process are a power of two apart, and must be timed as often as the others.
 */
#define MW_GROWTH_TIMED_NTH 61U

/* A run that takes longer was interrupted, and counts as this long: it stands for many. */
#define MW_GROWTH_RUN_MAX_NS 100000ULL

/* Returns when the run begins, or 0 if it is not timed. */
static __always_inline __u64 mw_growth_run_begin(const struct mw_growth_filter *filter)
{
	return filter->untimed ? 0 : bpf_ktime_get_ns();
}

static __always_inline void mw_growth_run_end(struct mw_growth_filter *filter, __u64 begin)
{
	__u64 took;

	filter->runs++;
	if (filter->untimed) {
		filter->untimed--;
		return;
	}
	took = bpf_ktime_get_ns() - begin;
	filter->timed++;
	filter->timed_ns += took < MW_GROWTH_RUN_MAX_NS ? took : MW_GROWTH_RUN_MAX_NS;
	filter->untimed = MW_GROWTH_TIMED_NTH - 1;
}

#endif /* _MW_GROWTH_RUNS_H */
