/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The tracker: which process is RMID 7 of generation 3, at which time.
 *
 * Changes are queued, in any order, and take effect when time is advanced past
 * them, in order of time (equal times: alloc and existing, exec, free). So a
 * caller that works on the slot ending at T sees the state of T although it has
 * already read records that are newer.
 *
 * What is freed is still found by (rmid, generation) until it is retired:
 * measurements that belong to it may come after. By RMID alone it is not: from
 * the moment of the free to the next alloc the RMID belongs to nobody.
 * The edges: an assignment holds in [alloc time, free time).
 */
#ifndef MEMWATCH_TRACKER_H
#define MEMWATCH_TRACKER_H

#include <stddef.h>

#include <linux/memwatch.h>
#include <memwatch/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

struct memwatch_tracker;

/* Flags of &struct memwatch_process. */
#define MEMWATCH_PROCESS_EXISTED (1U << 0) /* its ALLOC was not seen, only EXISTING */
#define MEMWATCH_PROCESS_FREED	 (1U << 1) /* free_time_ns is valid */

/**
 * struct memwatch_process - one assignment of an RMID to a process
 * @rmid: the RMID
 * @generation: with @rmid unique for ever
 * @tgid: process id in the initial pid namespace
 * @parent_tgid: of its parent at allocation
 * @start_time_ns: CLOCK_BOOTTIME; (tgid, start_time_ns) is the process. One
 *	process may have had several assignments.
 * @alloc_time_ns: when the RMID was given
 * @free_time_ns: when it was taken back, see @flags
 * @cgroup_id: inode number of its directory below /sys/fs/cgroup; 0 unknown
 * @uid: real user id
 * @reason: &enum memwatch_reason of the last change
 * @flags: MEMWATCH_PROCESS_*
 * @comm: its present name
 */
struct memwatch_process {
	__u32 rmid;
	__u32 generation;
	__u32 tgid;
	__u32 parent_tgid;
	__u64 start_time_ns;
	__u64 alloc_time_ns;
	__u64 free_time_ns;
	__u64 cgroup_id;
	__u32 uid;
	__u32 reason;
	__u32 flags;
	char comm[MEMWATCH_COMM_LEN];
};

/**
 * struct memwatch_tracker_opts - options of memwatch_tracker_new()
 * @sz: sizeof(struct memwatch_tracker_opts)
 * @pending_max: changes queued at most; when full, the oldest takes effect
 *	early. Default 65536.
 * @processes_max: assignments kept at most, live and freed; when full, the one
 *	freed longest ago is forgotten. Default 262144.
 */
struct memwatch_tracker_opts {
	size_t sz;
	__u32 pending_max;
	__u32 processes_max;
};

/**
 * memwatch_tracker_new - create a tracker
 * @ctx: context
 * @opts: options or NULL
 * @ret: the tracker; caller frees with memwatch_tracker_unref()
 *
 * Returns: 0, -ENOMEM, -E2BIG.
 * Since: 0.1
 */
int memwatch_tracker_new(struct memwatch_ctx *ctx, const struct memwatch_tracker_opts *opts,
			 struct memwatch_tracker **ret);

/**
 * memwatch_tracker_ref - take a reference
 * @tracker: tracker
 *
 * Returns: @tracker.
 * Since: 0.1
 */
struct memwatch_tracker *memwatch_tracker_ref(struct memwatch_tracker *tracker);

/**
 * memwatch_tracker_unref - drop a reference; the last one frees
 * @tracker: tracker or NULL
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_tracker *memwatch_tracker_unref(struct memwatch_tracker *tracker);

/**
 * memwatch_tracker_feed - queue what a record says
 * @tracker: tracker
 * @record: any record; only the RMID_* types matter
 *
 * An EXISTING that says no more than what is known, or that comes after the
 * free of the same generation (a dump raced with an exit), changes nothing.
 *
 * Returns: 1, queued; 0, not of interest; -EINVAL, it makes no sense (RMID 0,
 * too short): counted, otherwise ignored; -ENOMEM.
 * Since: 0.1
 */
int memwatch_tracker_feed(struct memwatch_tracker *tracker,
			  const struct memwatch_record_header *record);

/**
 * memwatch_tracker_alloc - queue an allocation
 * @tracker: tracker
 * @process: the assignment; takes effect at its alloc_time_ns. Copied; flags
 *	and free_time_ns are ignored.
 *
 * Returns: 1, -EINVAL, -ENOMEM, as memwatch_tracker_feed().
 * Since: 0.1
 */
int memwatch_tracker_alloc(struct memwatch_tracker *tracker,
			   const struct memwatch_process *process);

/**
 * memwatch_tracker_exec - queue a change of name
 * @tracker: tracker
 * @rmid: RMID
 * @generation: its generation
 * @time_ns: when
 * @comm: new name
 *
 * Returns: 1, -EINVAL, -ENOMEM.
 * Since: 0.1
 */
int memwatch_tracker_exec(struct memwatch_tracker *tracker, __u32 rmid, __u32 generation,
			  __u64 time_ns, const char *comm);

/**
 * memwatch_tracker_free - queue a free
 * @tracker: tracker
 * @rmid: RMID
 * @generation: its generation
 * @time_ns: when
 *
 * Returns: 1, -EINVAL, -ENOMEM.
 * Since: 0.1
 */
int memwatch_tracker_free(struct memwatch_tracker *tracker, __u32 rmid, __u32 generation,
			  __u64 time_ns);

/**
 * memwatch_tracker_advance - let everything up to a time take effect
 * @tracker: tracker
 * @time_ns: changes at or before it take effect; going back does nothing
 *
 * Returns: how many took effect (capped at INT_MAX), or -ENOMEM.
 * Since: 0.1
 */
int memwatch_tracker_advance(struct memwatch_tracker *tracker, __u64 time_ns);

/**
 * memwatch_tracker_retire - forget what was freed before a time
 * @tracker: tracker
 * @time_ns: assignments with a free time before it are forgotten
 *
 * Returns: how many were forgotten.
 * Since: 0.1
 */
int memwatch_tracker_retire(struct memwatch_tracker *tracker, __u64 time_ns);

/**
 * memwatch_tracker_lookup - by RMID and generation
 * @tracker: tracker
 * @rmid: RMID
 * @generation: its generation
 * @ret: the assignment, live or freed and not yet retired; owned by the
 *	tracker, valid until the next advance or retire
 *
 * Returns: 0, or -ENOENT.
 * Since: 0.1
 */
int memwatch_tracker_lookup(const struct memwatch_tracker *tracker, __u32 rmid, __u32 generation,
			    const struct memwatch_process **ret);

/**
 * memwatch_tracker_owner - by RMID and time
 * @tracker: tracker
 * @rmid: RMID
 * @time_ns: a time not later than the last advance
 * @ret: the assignment with alloc time <= @time_ns < free time; valid until the
 *	next advance or retire
 *
 * Returns: 0, or -ENOENT: it belonged to nobody.
 * Since: 0.1
 */
int memwatch_tracker_owner(const struct memwatch_tracker *tracker, __u32 rmid, __u64 time_ns,
			   const struct memwatch_process **ret);

/**
 * memwatch_tracker_next - walk over all assignments known
 * @tracker: tracker
 * @position: 0 to start; advanced by each call
 * @ret: an assignment, in no particular order; valid until the next advance
 *	or retire
 *
 * Returns: 1, or 0 at the end.
 * Since: 0.1
 */
int memwatch_tracker_next(const struct memwatch_tracker *tracker, size_t *position,
			  const struct memwatch_process **ret);

/**
 * struct memwatch_tracker_stats - counts
 * @sz: in: sizeof(struct memwatch_tracker_stats)
 * @live: assignments that hold
 * @freed: kept although freed
 * @pending: changes not yet in effect
 * @invalid: records that made no sense
 * @ignored: duplicates, EXISTING after FREE, FREE or EXEC of an unknown RMID
 * @early: changes that took effect early because pending_max was reached
 * @evicted: assignments forgotten because processes_max was reached
 */
struct memwatch_tracker_stats {
	size_t sz;
	__u64 live;
	__u64 freed;
	__u64 pending;
	__u64 invalid;
	__u64 ignored;
	__u64 early;
	__u64 evicted;
};

/**
 * memwatch_tracker_stats - counts
 * @tracker: tracker
 * @ret: filled in up to ret->sz
 *
 * Returns: 0 or -EINVAL.
 * Since: 0.1
 */
int memwatch_tracker_stats(const struct memwatch_tracker *tracker,
			   struct memwatch_tracker_stats *ret);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_TRACKER_H */
