/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The keys and values of the BPF maps that growth.bpf.c and the library share. Only the
 * iterator program writes the state of a process, and only one instance of it runs.
 */
#ifndef _MW_GROWTH_MAPS_H
#define _MW_GROWTH_MAPS_H

#include <linux/memwatch.h>

#include "growth.h"

/**
 * struct mw_growth_key - key of the maps "processes" and "histories"
 * @start_ns: start time of the process, CLOCK_BOOTTIME: a process id that is used again
 *	comes with another one
 * @tgid: process id
 * @reserved: zero
 */
struct mw_growth_key {
	__u64 start_ns;
	__u32 tgid;
	__u32 reserved;
};

/**
 * struct mw_growth_process - value of the map "processes"
 * @growth: state of the detectors
 * @cgroup: cgroup id in the unified hierarchy, 0 if there is none
 * @round: number of the round in which the process was sampled last
 * @limit: &enum memwatch_limit that the headroom in @growth is the distance to
 * @anon: anonymous pages at the last sample
 * @swap: pages in swap at the last sample; what the signal has beyond these is shared memory
 * @exec: counts the execs of the process: another value is another program
 * @owner: user that the process counts for, see &struct mw_growth_owner
 * @comm: name at the first sample, at the last exec or at the last event
 */
struct mw_growth_process {
	struct mw_growth growth;
	__u64 cgroup;
	__u32 round;
	__u32 limit;
	__u32 anon;
	__u32 swap;
	__u32 exec;
	__u32 owner;
	char comm[16];
};

/**
 * struct mw_growth_program - key of the map "programs", whose value is &struct mw_growth_reached
 * @owner: user that the process counts for: what one does says nothing about those of another
 * @comm: name of the process
 */
struct mw_growth_program {
	__u32 owner;
	char comm[16];
};

/* How many programs are remembered; those that were needed longest ago are forgotten. */
#define MW_GROWTH_PROGRAMS 1024U

/* How many processes with a notice are looked at for where they take memory. */
#define MW_GROWTH_SUSPECTS 16U

/* How many can be looked at for what they touch, at most. */
#define MW_GROWTH_SUSPECTS_MAX 512U

/* The key of the map "owners" for all users that have no entry of their own. */
#define MW_GROWTH_OWNER_OTHERS (~0U)
#define MW_GROWTH_OWNERS       4096U

/**
 * struct mw_growth_owner - value of the map "owners", whose key is a user id
 * @round: the round that the numbers are of
 * @states: processes with a state
 * @refused: processes without a state, because there was no room for one
 * @before: processes with a state in the round before, less those that the library removed
 * @admitted: processes that got a state in this round
 * @cursor: while processes wait for a state, only those with a larger process id get one,
 *	so that each of them has its turn
 * @above: those of @refused whose process id is above @cursor
 * @exits: processes with a state that have exited; only the exit program counts it
 * @exited: value of @exits when the round before began
 * @exits_now: value of @exits when this round began
 *
 * The processes of a user namespace count for the user who made the outermost one, because
 * a user can have thousands of user ids in namespaces.
 */
struct mw_growth_owner {
	__u32 round;
	__u32 states;
	__u32 refused;
	__u32 before;
	__u32 admitted;
	__u32 cursor;
	__u32 above;
	__u32 exits;
	__u32 exited;
	__u32 exits_now;
};

/**
 * struct mw_growth_control - settings, written by the library between rounds
 * @request_ns: when the event program last requested a round
 * @request_gap_ns: minimum time between two requests
 * @round: number of the round; never 0
 * @host_headroom: pages that the machine can still give
 * @width: the event program examines an mm after it gained this many pages on one CPU;
 *	up to 6.1 after this many events, each of which stands for up to 64 pages
 * @request_pages: growth since the last round for which a round is requested
 * @page_shift: page shift of the machine, minus MW_GROWTH_PAGE_SHIFT
 * @host_swap: free swap, in pages of the machine
 * @quota: number of states that each owner may have while there is no room for all
 * @reserved: zero
 */
struct mw_growth_control {
	__u64 request_ns;
	__u64 request_gap_ns;
	__u32 round;
	__u32 host_headroom;
	__u32 width;
	__u32 request_pages;
	__u32 page_shift;
	__u32 host_swap;
	__u32 quota;
	__u32 reserved;
};

/* Keys of the map "counts". Whatever fails or is left out is counted here. */
enum mw_growth_count {
	MW_GROWTH_COUNT_FULL = 0,	  /* samples lost because "processes" was full */
	MW_GROWTH_COUNT_HISTORY_FULL = 1, /* samples without history: "histories" was full */
	MW_GROWTH_COUNT_OUTPUT = 2,	  /* records that a full ring refused */
	MW_GROWTH_COUNT_NO_RING = 3,	  /* records lost because their CPU has no ring */
	/* From here on: no failures. */
	MW_GROWTH_COUNT_SAMPLES = 4,  /* samples of processes */
	MW_GROWTH_COUNT_REQUESTS = 5, /* rounds requested by the event program */
	MW_GROWTH_COUNT_EXECS = 6,    /* states begun anew because of an exec */
	MW_GROWTH_COUNT_EXITS = 7,    /* states deleted with the last thread */
	MW_GROWTH_COUNT_DEEP = 8,     /* cgroups of which not all ancestors were read */
	MW_GROWTH_COUNT_MAX = 9,
};

/**
 * struct mw_growth_test - value of the map "test"
 * @growth: state that the test program updates
 * @history: history that it updates
 * @sample: sample that it feeds
 * @started: 1 once @growth is initialised
 * @has_history: 1 once @history is initialised
 * @event: MW_GROWTH_EVENT_* of the sample
 * @reserved: zero
 */
struct mw_growth_test {
	struct mw_growth growth;
	struct mw_growth_history history;
	struct mw_growth_sample sample;
	__u32 started;
	__u32 has_history;
	__u32 event;
	__u32 reserved;
};

/**
 * struct mw_growth_filter - value of the map "filters": what the event program saw last on
 *	one CPU, whose number is the key
 * @mm: address of the mm
 * @seen: up to 6.1: events of this mm; later: its anonymous and shared pages
 * @runs: how often the event program has run
 * @timed: how many of these runs were timed, see growth-runs.h
 * @timed_ns: how long these took
 * @untimed: number of runs to the next one that is timed
 * @reserved: pads the filter to a cache line
 */
struct mw_growth_filter {
	__u64 mm;
	__s64 seen;
	__u64 runs;
	__u64 timed;
	__u64 timed_ns;
	__u64 untimed;
	__u64 reserved[2];
};

#endif /* _MW_GROWTH_MAPS_H */
