/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth monitor: every process of this machine, sampled and judged in the
 * kernel, without the module. Needs BTF, a kernel from 5.10, and root or
 * CAP_BPF and CAP_PERFMON.
 *
 * ROUNDS. An iterator program visits all tasks once a period. Between two rounds
 * a program on kmem:rss_stat watches for processes that grow fast and asks for a
 * round at once. memwatch_watch_poll() runs the rounds: call it all the time.
 *
 * BUDGET. The monitor measures its own CPU time and lengthens the period, and
 * the least time between rounds that were asked for, so as to stay within
 * @rest_ppm and @storm_ppm of one CPU. If the event program itself costs more
 * than @storm_ppm it is taken off for a while; fast growth is then found at the
 * next round. memwatch_watch_stats() says so.
 *
 * LIMITS. memory.max and memory.high of the cgroup (v2) and those above it, with
 * swap where there is some; RLIMIT_DATA and RLIMIT_AS; memory of the machine.
 */
#ifndef MEMWATCH_WATCH_H
#define MEMWATCH_WATCH_H

#include <stddef.h>

#include <linux/memwatch.h>
#include <memwatch/ctx.h>
#include <memwatch/growth.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct memwatch_watch - a growth monitor
 */
struct memwatch_watch;

/* Flags of &struct memwatch_watch_opts. */
#define MEMWATCH_WATCH_NO_EVENTS (1U << 0) /* rounds only, no program on rss_stat */

/**
 * struct memwatch_watch_opts - options of memwatch_watch_open()
 * @sz: sizeof(struct memwatch_watch_opts)
 * @flags: MEMWATCH_WATCH_*
 * @max_processes: processes with state; default 10000. More are counted, not
 *	watched
 * @period_ns: from one round to the next; default 5 s
 * @rest_ppm: CPU time of rounds, in millionths of one CPU; default 1000
 * @storm_ppm: the same while processes grow fast; default 10000
 */
struct memwatch_watch_opts {
	size_t sz;
	__u32 flags;
	__u32 max_processes;
	__u64 period_ns;
	__u32 rest_ppm;
	__u32 storm_ppm;
};

/**
 * enum memwatch_watch_events - the event program
 * @MEMWATCH_EVENTS_UNWANTED: MEMWATCH_WATCH_NO_EVENTS
 * @MEMWATCH_EVENTS_ATTACHED: it runs
 * @MEMWATCH_EVENTS_OVER_BUDGET: it cost too much, and is tried again later
 * @MEMWATCH_EVENTS_IMPOSSIBLE: the kernel refused it
 */
enum memwatch_watch_events {
	MEMWATCH_EVENTS_UNWANTED = 0,
	MEMWATCH_EVENTS_ATTACHED = 1,
	MEMWATCH_EVENTS_OVER_BUDGET = 2,
	MEMWATCH_EVENTS_IMPOSSIBLE = 3,
};

/**
 * struct memwatch_watch_stats - what the monitor does and costs
 * @sz: sizeof(struct memwatch_watch_stats)
 * @rounds: since it was opened
 * @pokes: rounds asked for by the event program
 * @samples: of processes
 * @full: samples of processes for which there was no room
 * @deep_full: samples of growing processes for whose history there was no room
 * @execs: histories begun anew because of an exec
 * @exits: histories deleted with the last thread
 * @lost: records that found no room in a ring
 * @processes: with state, when last counted
 * @growing: of those, with a history, when last counted
 * @state_bytes: of one process
 * @history_bytes: more, of one that grows
 * @period_ns: in force, possibly longer than asked for
 * @gap_ns: least time between rounds that are asked for, in force
 * @cpu_ns: CPU time of this thread in the monitor, rounds included
 * @event_ns: CPU time of the event program, as far as it was measured, scaled up
 * @event_ppm: its share of one CPU, when last measured
 * @events_attached: 1; 0: not wanted, not possible, or over the budget
 * @over_budget: how often it was taken off
 * @reaction_ns: from the last request for a round to the end of that round
 * @width: what the event program waits for before it looks: pages that one
 *	process gains on one CPU; up to 6.1 events, of up to 64 pages each
 * @events_state: &enum memwatch_watch_events: why it is attached or not
 * @events_error: errno of attaching it, if it is not possible
 * @rest_ppm: budget of rounds
 * @storm_ppm: budget while processes grow fast, and of the event program
 * @events_retry_ns: when it is tried again, on CLOCK_MONOTONIC; 0: is not
 */
struct memwatch_watch_stats {
	size_t sz;
	__u64 rounds;
	__u64 pokes;
	__u64 samples;
	__u64 full;
	__u64 deep_full;
	__u64 execs;
	__u64 exits;
	__u64 lost;
	__u32 processes;
	__u32 growing;
	__u32 state_bytes;
	__u32 history_bytes;
	__u64 period_ns;
	__u64 gap_ns;
	__u64 cpu_ns;
	__u64 event_ns;
	__u32 event_ppm;
	__u32 events_attached;
	__u64 over_budget;
	__u64 reaction_ns;
	__u32 width;
	__u32 events_state;
	__u32 events_error;
	__u32 rest_ppm;
	__u32 storm_ppm;
	__u32 reserved;
	__u64 events_retry_ns;
};

/**
 * memwatch_watch_open - start watching
 * @ctx: context
 * @opts: options or NULL
 * @ret: caller frees with memwatch_watch_unref()
 *
 * Returns: 0; -EOPNOTSUPP, this kernel lacks BTF or iterators; -EPERM or
 * -EACCES, not permitted; -EINVAL; -ENOMEM.
 * Since: 0.1
 */
int memwatch_watch_open(struct memwatch_ctx *ctx, const struct memwatch_watch_opts *opts,
			struct memwatch_watch **ret);

/**
 * memwatch_watch_unref - stop and free; NULL is fine
 * @watch: monitor
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_watch *memwatch_watch_unref(struct memwatch_watch *watch);

/* What memwatch_watch_poll() returns: bits. */
#define MEMWATCH_WATCH_EVENT 1 /* memwatch_watch_next() has a record */
#define MEMWATCH_WATCH_ROUND 2 /* a round has ended */

/**
 * memwatch_watch_poll - run rounds, wait for something to tell
 * @watch: monitor
 * @timeout_ms: longest wait; -1 for ever
 *
 * Returns: bits as above; 0, time is up; -EINTR, a signal; another negative
 * errno.
 * Since: 0.1
 */
int memwatch_watch_poll(struct memwatch_watch *watch, int timeout_ms);

/**
 * memwatch_watch_next - the next alert, or end of one, in time order
 * @watch: monitor
 * @ret: a record of type MEMWATCH_RECORD_GROWTH or MEMWATCH_RECORD_LOST, valid
 *	until the next call here or of memwatch_watch_poll()
 *
 * Returns: 1; 0, none now; -ENOMEM.
 * Since: 0.1
 */
int memwatch_watch_next(struct memwatch_watch *watch, const struct memwatch_record_header **ret);

/**
 * memwatch_watch_snapshot - read the state of all processes
 * @watch: monitor
 *
 * Returns: how many there are, for memwatch_watch_row() and
 * memwatch_watch_sample(), which give what was read here; or a negative errno.
 * Since: 0.1
 */
int memwatch_watch_snapshot(struct memwatch_watch *watch);

/**
 * memwatch_watch_row - what is known of a process
 * @watch: monitor
 * @index: from 0, in no order
 * @ret: filled in; @sz is set by the caller
 *
 * Returns: 1; 0 if @index is past the last; -EINVAL.
 * Since: 0.1
 */
int memwatch_watch_row(struct memwatch_watch *watch, unsigned int index,
		       struct memwatch_growth_row *ret);

/**
 * memwatch_watch_sample - the last sample of a process
 * @watch: monitor
 * @index: as for memwatch_watch_row()
 * @ret: the sample; @limit_bytes is what the process can reach
 * @cgroup: id of its cgroup, or NULL
 *
 * Returns: 1; 0 if @index is past the last.
 * Since: 0.1
 */
int memwatch_watch_sample(struct memwatch_watch *watch, unsigned int index,
			  struct memwatch_growth_sample *ret, __u64 *cgroup);

/**
 * memwatch_watch_limit_name - what a process will run into, in words
 * @limit: &enum memwatch_limit
 *
 * Returns: such as "memory.max of its cgroup"; "its limit" for one not known.
 * Since: 0.1
 */
const char *memwatch_watch_limit_name(unsigned int limit);

/**
 * memwatch_watch_save - write all histories to a file
 * @watch: monitor
 * @path: replaced as a whole
 *
 * Returns: 0 or a negative errno.
 * Since: 0.1
 */
int memwatch_watch_save(struct memwatch_watch *watch, const char *path);

/**
 * memwatch_watch_load - take histories up again
 * @watch: monitor, before its first round
 * @path: written by memwatch_watch_save()
 *
 * What happened to processes that are still the same goes on where it stood; the
 * time in between counts as not seen. A file of another boot or another version
 * is not used.
 *
 * Returns: how many histories were taken; -ENOENT; -ESTALE, the file is of
 * another boot or version; -EBADMSG, it is damaged.
 * Since: 0.1
 */
int memwatch_watch_load(struct memwatch_watch *watch, const char *path);

/**
 * memwatch_watch_stats - what the monitor does and costs
 * @watch: monitor
 * @ret: filled in; @sz is set by the caller
 *
 * Returns: 0 or -EINVAL.
 * Since: 0.1
 */
int memwatch_watch_stats(struct memwatch_watch *watch, struct memwatch_watch_stats *ret);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_WATCH_H */
