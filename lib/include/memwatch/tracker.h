/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The tracker: which process has which RMID at which time.
 *
 * Changes are queued in any order and take effect when the tracker is advanced past their
 * time. They take effect in the order of time; at the same time allocations come first, then
 * changes of name, then frees. So a caller that works on the slot ending at T sees the state
 * at T, although it has already read newer records.
 *
 * A freed assignment is still found by its RMID and generation until it is retired, because
 * measurements of it may come later. It is not found by its RMID alone: between a free and the
 * next allocation the RMID belongs to no process. An assignment holds from its allocation
 * time up to, and not including, its free time.
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
/* The process has been without an RMID, or an unknown one, for a time. */
#define MEMWATCH_PROCESS_PARTIAL (1U << 2)

/**
 * struct memwatch_process - one assignment of an RMID to a process
 * @sz: sizeof(struct memwatch_process) of who has filled it in
 * @rmid: the RMID
 * @generation: its generation; the pair of both is never used again
 * @tgid: process id in the initial pid namespace
 * @parent_tgid: process id of its parent at the allocation
 * @start_time_ns: start of the process in CLOCK_BOOTTIME; identifies it together with
 *	@tgid. A process may have several assignments, one after the other.
 * @alloc_time_ns: when the RMID was allocated to it
 * @free_time_ns: when the RMID was freed; valid only with MEMWATCH_PROCESS_FREED
 * @cgroup_id: inode number of its directory below /sys/fs/cgroup; 0 if unknown
 * @uid: real user id
 * @reason: &enum memwatch_reason of the last change
 * @flags: MEMWATCH_PROCESS_*
 * @comm: its current name
 * @unmeasured_ns: for how long the process ran without an RMID before this one, since it had
 *	the one before or, if this is its first one, since it was known
 */
struct memwatch_process {
	size_t sz;
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
	__u64 unmeasured_ns;
};

/**
 * struct memwatch_tracker_opts - options of memwatch_tracker_new()
 * @sz: sizeof(struct memwatch_tracker_opts)
 * @pending_max: how many changes may be queued; when the queue is full, the earliest
 *	change takes effect at once. Default 65536.
 * @processes_max: how many assignments are kept, live and freed together; when there are
 *	more, the one that was freed first is forgotten. Default 262144.
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
 * Returns: 0, -ENOMEM, -E2BIG, -EINVAL: the size in the options is not set.
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
 * memwatch_tracker_feed - queue the change that a record reports
 * @tracker: tracker
 * @record: any record; types other than RMID_* are ignored
 *
 * An EXISTING record changes only the cgroup and the user if the assignment is known already, and
 * nothing if it comes after the free of the same generation: a dump may race with an exit.
 *
 * Returns: 1, queued; 0, ignored; -EINVAL, the record is invalid (generation 0, or too short): it
 * is counted and otherwise ignored; -ENOMEM. Since: 0.1
 */
int memwatch_tracker_feed(struct memwatch_tracker *tracker,
			  const struct memwatch_record_header *record);

/**
 * memwatch_tracker_alloc - queue an allocation
 * @tracker: tracker
 * @process: the assignment, with its @sz; takes effect at its alloc_time_ns. Copied; flags
 *	and free_time_ns are ignored.
 *
 * Returns: 1, -EINVAL, -ENOMEM, as memwatch_tracker_feed(); -E2BIG, it is of a newer library.
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
 * memwatch_tracker_advance - apply all changes up to a time
 * @tracker: tracker
 * @time_ns: changes at or before this time take effect; an earlier time than in the last
 *	call does nothing
 *
 * Returns: how many took effect (capped at INT_MAX), or -ENOMEM.
 * Since: 0.1
 */
int memwatch_tracker_advance(struct memwatch_tracker *tracker, __u64 time_ns);

/**
 * memwatch_tracker_retire - forget the assignments that were freed before a time
 * @tracker: tracker
 * @time_ns: assignments with a free time before it are forgotten
 *
 * Returns: how many were forgotten.
 * Since: 0.1
 */
int memwatch_tracker_retire(struct memwatch_tracker *tracker, __u64 time_ns);

/**
 * memwatch_tracker_lookup - find an assignment by RMID and generation
 * @tracker: tracker
 * @rmid: RMID
 * @generation: its generation
 * @ret: the assignment: live, freed and not yet retired, or queued and not yet in effect;
 *	owned by the tracker, valid until the next call that changes it: feed, alloc, exec, free,
 *	advance, retire, or memwatch_slots_next() of slots that use it
 *
 * Returns: 0, or -ENOENT.
 * Since: 0.1
 */
int memwatch_tracker_lookup(const struct memwatch_tracker *tracker, __u32 rmid, __u32 generation,
			    const struct memwatch_process **ret);

/**
 * memwatch_tracker_owner - find the assignment of an RMID at a time
 * @tracker: tracker
 * @rmid: RMID
 * @time_ns: a time not later than the last advance
 * @ret: the assignment with alloc time <= @time_ns < free time; valid as that of
 *	memwatch_tracker_lookup()
 *
 * RMID 0 alone identifies no process, see memwatch_tracker_lookup().
 *
 * Returns: 0, or -ENOENT: at that time the RMID belonged to no process, or it is 0.
 * Since: 0.1
 */
int memwatch_tracker_owner(const struct memwatch_tracker *tracker, __u32 rmid, __u64 time_ns,
			   const struct memwatch_process **ret);

/**
 * memwatch_tracker_next - walk over all assignments in the tracker
 * @tracker: tracker
 * @position: 0 to start; advanced by each call
 * @ret: an assignment, in no particular order; valid as that of memwatch_tracker_lookup()
 *
 * Returns: 1, or 0 at the end.
 * Since: 0.1
 */
int memwatch_tracker_next(const struct memwatch_tracker *tracker, size_t *position,
			  const struct memwatch_process **ret);

/**
 * struct memwatch_tracker_stats - statistics of a tracker
 * @sz: in: sizeof(struct memwatch_tracker_stats)
 * @live: assignments that hold
 * @freed: assignments that were freed and not yet retired
 * @pending: changes that have not taken effect
 * @invalid: invalid records
 * @ignored: records without effect: duplicates, EXISTING after FREE, FREE or EXEC of an
 *	unknown assignment
 * @early: changes that took effect early because there were pending_max
 * @evicted: assignments that were forgotten, or not taken, because there were
 *	processes_max
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
 * memwatch_tracker_get_stats - read the statistics
 * @tracker: tracker
 * @ret: filled in up to ret->sz
 *
 * Returns: 0 or -EINVAL.
 * Since: 0.1
 */
int memwatch_tracker_get_stats(const struct memwatch_tracker *tracker,
			       struct memwatch_tracker_stats *ret);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_TRACKER_H */
