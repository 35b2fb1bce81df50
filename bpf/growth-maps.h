/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What growth.bpf.c and the library share: keys and values of the maps. The
 * only writer of the state is the iterator program, which runs once at a time.
 */
#ifndef _MW_GROWTH_MAPS_H
#define _MW_GROWTH_MAPS_H

#include <linux/memwatch.h>

#include "growth.h"

/* A process id that is used again comes with another start time. */
struct mw_growth_key {
	__u64 start_ns; /* CLOCK_BOOTTIME */
	__u32 tgid;
	__u32 reserved;
};

/**
 * struct mw_growth_process - value of the map "processes"
 * @growth: the detectors
 * @exec: changes with each exec
 * @cgroup: id in the unified hierarchy, 0 if there is none
 * @round: in which it was last sampled
 * @limit: &enum memwatch_limit that @growth.headroom is the distance to
 * @anon: pages, as all three
 * @swap: in swap
 * @shmem: shared memory
 * @comm: name at the start, the exec or the last alert
 */
struct mw_growth_process {
	struct mw_growth growth;
	__u64 exec;
	__u64 cgroup;
	__u32 round;
	__u32 limit;
	__u32 anon;
	__u32 swap;
	__u32 shmem;
	__u32 reserved;
	char comm[16];
};

/**
 * struct mw_growth_limit - value of the map "limits", by cgroup id
 * @headroom: pages that may be added before the nearest limit at or above the cgroup
 * @limit: &enum memwatch_limit
 */
struct mw_growth_limit {
	__u32 headroom;
	__u32 limit;
};

/**
 * struct mw_growth_control - set by the library between rounds
 * @request_ns: the last time the event program asked for a round
 * @request_gap_ns: it asks no more often than this
 * @round: number of the round; not 0
 * @host_headroom: pages that the machine can still give
 * @width: pages that one mm gains, as seen by one CPU, after which the event
 *	program looks; up to 6.1 events, which stand for up to 64 pages each
 * @request_pages: growth since the last round that is worth a round
 * @page_shift: of the machine, minus MW_GROWTH_PAGE_SHIFT
 */
struct mw_growth_control {
	__u64 request_ns;
	__u64 request_gap_ns;
	__u32 round;
	__u32 host_headroom;
	__u32 width;
	__u32 request_pages;
	__u32 page_shift;
	__u32 reserved;
};

/* What can go wrong or be left out: keys of the map "counts". None is silent. */
enum mw_growth_count {
	MW_GROWTH_COUNT_FULL = 0,	  /* samples of processes that found no headroom */
	MW_GROWTH_COUNT_HISTORY_FULL = 1, /* the same, for the history state */
	MW_GROWTH_COUNT_OUTPUT = 2,	  /* records that could not be sent */
	MW_GROWTH_COUNT_NO_RING = 3,	  /* the same, because their CPU has no ring */
	MW_GROWTH_COUNT_SAMPLES = 4,	  /* not a failure, as all that follow */
	MW_GROWTH_COUNT_REQUESTS = 5,	  /* rounds asked for by the event program */
	MW_GROWTH_COUNT_EXECS = 6,	  /* states begun anew */
	MW_GROWTH_COUNT_EXITS = 7,	  /* states deleted with the last thread */
	MW_GROWTH_COUNT_MAX = 8,
};

/* Value of the map "test": state, and the sample that the test entry feeds to it. */
struct mw_growth_test {
	struct mw_growth growth;
	struct mw_growth_history history;
	struct mw_growth_sample sample;
	__u32 started;
	__u32 has_history;
	__u32 event;
	__u32 reserved;
};

/* One for each CPU, a cache line each; more CPUs share. */
#define MW_GROWTH_FILTERS 256U

struct mw_growth_filter {
	__u64 mm;
	__s64 seen;
	__u64 reserved[6];
};

#endif /* _MW_GROWTH_MAPS_H */
