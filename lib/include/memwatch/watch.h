/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth monitor: samples and judges every process of this machine in the kernel. It
 * does not need the module. It needs BTF, a kernel from 5.10 on, and root or CAP_BPF and
 * CAP_PERFMON.
 *
 * ROUNDS. A BPF iterator samples all processes once a period. Between two rounds a program
 * on kmem:rss_stat, the event program, looks for processes that grow fast and requests a
 * round at once. memwatch_watch_poll() runs the rounds, so it must be called in a loop.
 *
 * BUDGET. The monitor measures its own CPU time. It lengthens the period, and the minimum
 * time between requested rounds, so that it stays within @rest_ppm and @storm_ppm of one
 * CPU. If the event program itself costs too much, it is detached for a while, and rounds
 * run more often instead. memwatch_watch_get_stats() says so. What the caller does with the
 * results counts too: with MEMWATCH_WATCH_OWN_THREAD all CPU time of the thread that calls
 * memwatch_watch_poll(), else what the caller reports to memwatch_watch_charge().
 *
 * ROOM. When more than @max_processes run, each user gets an equal share of the states, and
 * the processes of a user who has more take turns: those that do not grow give their states
 * to those that wait. The library logs a warning once, and @unwatched in the statistics
 * has the number of processes that wait.
 *
 * LIMITS. memory.max and memory.high of the cgroup and its ancestors, with the swap that
 * they may use (version 1: memory.limit_in_bytes and memory.memsw.limit_in_bytes);
 * RLIMIT_DATA and RLIMIT_AS; the memory of the machine.
 *
 * TOUCH. Leaked memory is not touched any more. Of up to 16 processes with a notice, a sample of
 * the pages is followed that they have gained since, by their accessed bits, at most 4096 pages of
 * each every ten seconds. More processes can be followed with @max_suspects: then it is fewer pages
 * of each, but at least 1024, and visits come less often if they would cost more, because all of
 * this takes at most 0.5 % of one CPU, and never stops a process: its lock
 * for the address space is held for some pages at a time, and the statistics say how long that
 * took at most. It needs an x86-64, CAP_SYS_NICE and CAP_SYS_PTRACE.
 *
 * WHERE. Of up to 16 processes with a notice, unless they have a heap profile, stacks are sampled
 * when they touch new pages, and when they ask for memory; <memwatch/where.h> names the functions.
 * The programs for this are attached only while there is such a process. The rate adapts, so that
 * 200 page faults of the machine a second are looked at. It needs an x86-64.
 */
#ifndef MEMWATCH_WATCH_H
#define MEMWATCH_WATCH_H

#include <stddef.h>

#include <linux/memwatch.h>
#include <memwatch/ctx.h>
#include <memwatch/groups.h>
#include <memwatch/growth.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct memwatch_watch - a growth monitor
 */
struct memwatch_watch;

/* Flags of &struct memwatch_watch_opts. */
#define MEMWATCH_WATCH_NO_EVENTS  (1U << 0) /* rounds only, no event program */
#define MEMWATCH_WATCH_OWN_THREAD (1U << 1) /* all CPU time of the calling thread counts */
#define MEMWATCH_WATCH_NO_TOUCH	  (1U << 2) /* does not look at the pages of processes, see TOUCH */
#define MEMWATCH_WATCH_NO_WHERE	  (1U << 3) /* does not sample stacks, see WHERE */

/**
 * struct memwatch_watch_opts - options of memwatch_watch_open(); 0 is the default of each
 * @sz: sizeof(struct memwatch_watch_opts)
 * @flags: MEMWATCH_WATCH_*
 * @max_processes: how many processes can have a state; default 10000. See ROOM
 * @period_ns: time from one round to the next; default 5 s
 * @rest_ppm: budget of regular rounds, in millionths of one CPU; default 1000
 * @storm_ppm: budget while processes grow fast; default 10000
 * @max_suspects: the pages of how many processes can be followed, at most 512; default 16. See
 *	TOUCH
 * @reserved: zero
 */
struct memwatch_watch_opts {
	size_t sz;
	__u32 flags;
	__u32 max_processes;
	__u64 period_ns;
	__u32 rest_ppm;
	__u32 storm_ppm;
	__u32 max_suspects;
	__u32 reserved;
};

/**
 * enum memwatch_watch_events - the state of the event program
 * @MEMWATCH_EVENTS_UNWANTED: MEMWATCH_WATCH_NO_EVENTS was given
 * @MEMWATCH_EVENTS_ATTACHED: it is attached
 * @MEMWATCH_EVENTS_OVER_BUDGET: it is detached because it cost too much, and will be
 *	attached again
 * @MEMWATCH_EVENTS_IMPOSSIBLE: the kernel refused to attach it
 */
enum memwatch_watch_events {
	MEMWATCH_EVENTS_UNWANTED = 0,
	MEMWATCH_EVENTS_ATTACHED = 1,
	MEMWATCH_EVENTS_OVER_BUDGET = 2,
	MEMWATCH_EVENTS_IMPOSSIBLE = 3,
};

/**
 * enum memwatch_watch_event_cost - what is known about the cost of the event program
 * @MEMWATCH_EVENT_COST_UNKNOWN: nothing yet, or the program is not used
 * @MEMWATCH_EVENT_COST_MEASURED: all of its runs were counted, and one in 61 timed
 */
enum memwatch_watch_event_cost {
	MEMWATCH_EVENT_COST_UNKNOWN = 0,
	MEMWATCH_EVENT_COST_MEASURED = 1,
};

/**
 * enum memwatch_watch_touch - whether it is known what growing processes touch, see TOUCH
 * @MEMWATCH_TOUCH_UNWANTED: MEMWATCH_WATCH_NO_TOUCH was given
 * @MEMWATCH_TOUCH_IDLE: no process has had a notice so far
 * @MEMWATCH_TOUCH_ACTIVE: it is known
 * @MEMWATCH_TOUCH_IMPOSSIBLE: not here, or not permitted; it was logged why
 */
enum memwatch_watch_touch {
	MEMWATCH_TOUCH_UNWANTED = 0,
	MEMWATCH_TOUCH_IDLE = 1,
	MEMWATCH_TOUCH_ACTIVE = 2,
	MEMWATCH_TOUCH_IMPOSSIBLE = 3,
};

/**
 * enum memwatch_watch_where_state - whether stacks are sampled, see WHERE
 * @MEMWATCH_WHERE_UNWANTED: MEMWATCH_WATCH_NO_WHERE was given
 * @MEMWATCH_WHERE_IDLE: there is no process to sample now
 * @MEMWATCH_WHERE_ACTIVE: they are
 * @MEMWATCH_WHERE_IMPOSSIBLE: not here, or not permitted; it was logged why
 */
enum memwatch_watch_where_state {
	MEMWATCH_WHERE_UNWANTED = 0,
	MEMWATCH_WHERE_IDLE = 1,
	MEMWATCH_WHERE_ACTIVE = 2,
	MEMWATCH_WHERE_IMPOSSIBLE = 3,
};

/**
 * struct memwatch_watch_stats - what the monitor does and costs
 * @sz: sizeof(struct memwatch_watch_stats)
 * @rounds: rounds since the monitor was opened
 * @pokes: requests for a round by the event program; one round may be the answer to several
 * @samples: samples of processes
 * @full: samples lost because processes had no state, see ROOM
 * @deep_full: samples of growing processes without a history, for the same reason
 * @execs: states begun anew because of an exec
 * @exits: states deleted with the last thread of a process
 * @lost: records that a ring had no space for
 * @processes: processes with a state, when last counted
 * @growing: those of them that have grown, when last counted
 * @state_bytes: size of the state of one process
 * @history_bytes: additional size of the history of one that has grown
 * @period_ns: current period, which may be longer than the requested one, or shorter
 *	while the event program is detached
 * @gap_ns: current minimum time between requested rounds
 * @cpu_ns: CPU time that was used for the monitor, see BUDGET
 * @event_ns: CPU time of the event program
 * @event_ppm: share of one CPU of the event program, when last measured. It has no meaning if
 *	@event_cost is MEMWATCH_EVENT_COST_UNKNOWN
 * @events_attached: 1 if the event program is attached, else 0
 * @over_budget: how often the event program was detached
 * @reaction_ns: time from the last request for a round to the end of that round
 * @width: the event program examines a process that has gained this many pages on one
 *	CPU; up to 6.1 one with this many events, of up to 64 pages each
 * @events_state: &enum memwatch_watch_events
 * @events_error: errno of attaching the event program, if it is impossible
 * @rest_ppm: budget of regular rounds
 * @storm_ppm: budget while processes grow fast, including the event program
 * @reserved: zero
 * @events_retry_ns: when the event program will be attached again, on CLOCK_MONOTONIC; 0
 *	if it is not detached
 * @replaced: states that were removed so that other processes could have one
 * @unwatched: processes without a state in the last round
 * @quota: states that each user could have in the last round; 0: there was room for all
 * @event_cost: &enum memwatch_watch_event_cost
 * @deep_cgroups: times that limits were read of a cgroup with more than 32 ancestors, of
 *	which the further ones were left out
 * @touch_state: &enum memwatch_watch_touch
 * @touch_error: errno that made it impossible
 * @touch_suspects: processes whose pages are followed
 * @touch_reserved: zero
 * @touch_visits: how often their pages were looked at
 * @touch_cpu_ns: CPU time of that, a part of @cpu_ns
 * @touch_stall_ns: longest time that the lock of an address space was held
 * @where_state: &enum memwatch_watch_where_state
 * @where_error: errno that made it impossible
 * @where_suspects: processes whose stacks are sampled
 * @where_period: one in so many page faults is looked at
 * @where_faults: page faults that were looked at, of all processes
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
	__u64 replaced;
	__u32 unwatched;
	__u32 quota;
	__u32 event_cost;
	__u32 deep_cgroups;
	__u32 touch_state;
	__u32 touch_error;
	__u32 touch_suspects;
	__u32 touch_reserved;
	__u64 touch_visits;
	__u64 touch_cpu_ns;
	__u64 touch_stall_ns;
	__u32 where_state;
	__u32 where_error;
	__u32 where_suspects;
	__u32 where_period;
	__u64 where_faults;
};

/**
 * memwatch_watch_open - open a growth monitor
 * @ctx: context
 * @opts: options or NULL
 * @ret: caller frees with memwatch_watch_unref()
 *
 * Returns: 0; -EOPNOTSUPP if this kernel lacks BTF or iterators; -EPERM or -EACCES if it
 * is not permitted; -EREMOTE if this process is in another pid namespace than the initial one,
 * in which a process has other ids; -ELIBACC if libbpf is not installed; -EINVAL, also
 * for a period outside of 50 ms to 60 s and a budget above one CPU; -E2BIG for options of a newer
 * library; -ENOMEM.
 * Since: 0.1
 */
MEMWATCH_MUST_CHECK int memwatch_watch_open(struct memwatch_ctx *ctx,
					    const struct memwatch_watch_opts *opts,
					    struct memwatch_watch **ret);

/**
 * memwatch_watch_unref - stop and free a growth monitor
 * @watch: monitor or NULL
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_watch *memwatch_watch_unref(struct memwatch_watch *watch);

/* The bits that memwatch_watch_poll() returns. */
#define MEMWATCH_WATCH_EVENT 1 /* memwatch_watch_next() has a record */
#define MEMWATCH_WATCH_ROUND 2 /* a round has ended */
#define MEMWATCH_WATCH_GROUP 4 /* memwatch_watch_next_group() has an event */

/**
 * memwatch_watch_poll - run the rounds that are due, and wait for events
 * @watch: monitor
 * @timeout_ms: maximum time to wait; -1: no maximum
 *
 * Returns: the bits above; 0 on timeout; -EINTR on a signal; another negative errno.
 * Since: 0.1
 */
int memwatch_watch_poll(struct memwatch_watch *watch, int timeout_ms);

/**
 * memwatch_watch_fd - a file descriptor for an event loop
 * @watch: monitor
 *
 * When it is readable, call memwatch_watch_poll() with a timeout of 0, which makes it unreadable
 * again when there is nothing to do. Do not read from it and do not close it: it belongs to the
 * monitor.
 *
 * Returns: a descriptor for poll() or epoll_wait(), the same at each call; a negative errno.
 * Since: 0.1
 */
int memwatch_watch_fd(struct memwatch_watch *watch);

/**
 * memwatch_watch_next - get the next notice or alert that was raised or has ended, in time order
 * @watch: monitor
 * @ret: a record of type MEMWATCH_RECORD_GROWTH or MEMWATCH_RECORD_LOST, valid
 *	until the next call here or of memwatch_watch_poll()
 *
 * @what of the record says which it is, &enum memwatch_growth_event. When a process ends, so do its
 * notice and its alert, without a record.
 *
 * Returns: 1; 0 if there is none now; -ENOMEM.
 * Since: 0.1
 */
int memwatch_watch_next(struct memwatch_watch *watch, const struct memwatch_record_header **ret);

/**
 * memwatch_watch_next_group - get the next notice or alert of a cgroup or of the machine
 * @watch: monitor
 * @record: filled in. @tgid is 0, @start_time_ns the key of the group, @comm the class
 * @group: filled in; @sz is set by the caller. @path is valid until the next round
 * @row: the verdict; @sz is set by the caller
 *
 * The same for the end of one. What is not taken after the round that brought it, which
 * MEMWATCH_WATCH_GROUP tells, is dropped before the next one. Cgroups are sampled in the regular
 * rounds, or less often if that would cost more than two fifths of the budget.
 *
 * Returns: 1; 0 if there is none now; -EINVAL.
 * Since: 0.1
 */
int memwatch_watch_next_group(struct memwatch_watch *watch, struct memwatch_record_growth *record,
			      struct memwatch_growth_group *group, struct memwatch_growth_row *row);

/**
 * memwatch_watch_get_group - get the verdict on a class of a cgroup or of the machine
 * @watch: monitor
 * @index: from 0, in no particular order
 * @ret: filled in; @sz is set by the caller
 * @row: the verdict; @sz is set by the caller
 *
 * Returns: 1; 0 if there is no such index; -EINVAL.
 * Since: 0.1
 */
int memwatch_watch_get_group(struct memwatch_watch *watch, unsigned int index,
			     struct memwatch_growth_group *ret, struct memwatch_growth_row *row);

/**
 * memwatch_watch_get_group_sample - get the last sample of a cgroup or of the machine
 * @watch: monitor
 * @index: from 0, in no particular order
 * @ret: filled in; @sz is set by the caller. @cgroup is valid until the next round. What is in swap
 *	is part of @anon_bytes
 *
 * Returns: 1; 0 if there is no such index; -EINVAL.
 * Since: 0.1
 */
int memwatch_watch_get_group_sample(struct memwatch_watch *watch, unsigned int index,
				    struct memwatch_growth_sample *ret);

/**
 * memwatch_watch_group_of - get the path of the memory cgroup of a process
 * @watch: monitor
 * @tgid: process id
 * @cgroup: id of its cgroup, as memwatch_watch_get_sample() gives it
 * @path: gets the path
 * @size: size of @path
 *
 * Returns: 1; 0 if it is not known, or longer.
 * Since: 0.1
 */
int memwatch_watch_group_of(struct memwatch_watch *watch, __u32 tgid, __u64 cgroup, char *path,
			    size_t size);

/**
 * memwatch_watch_charge - report CPU time that the caller used for the monitor
 * @watch: monitor
 * @cpu_ns: for example to print what it found; not what memwatch_watch_poll(),
 *	memwatch_watch_save() and memwatch_watch_load() took
 *
 * Without MEMWATCH_WATCH_OWN_THREAD, what is not reported is not part of the budget.
 * Since: 0.1
 */
void memwatch_watch_charge(struct memwatch_watch *watch, __u64 cpu_ns);

/**
 * memwatch_watch_find - get the present verdict on one process
 * @watch: monitor
 * @tgid: process id
 * @start_time_ns: start time of the process, as in the records
 * @ret: filled in; @sz is set by the caller
 * @cgroup: gets the id of its cgroup, or NULL
 *
 * Reads this process only, and needs no snapshot.
 *
 * Returns: 1; 0 if there is no such process or it has no state; -EINVAL.
 * Since: 0.1
 */
int memwatch_watch_find(struct memwatch_watch *watch, __u32 tgid, __u64 start_time_ns,
			struct memwatch_growth_row *ret, __u64 *cgroup);

/**
 * memwatch_watch_snapshot - copy the states of all processes
 * @watch: monitor
 *
 * memwatch_watch_get_row() and memwatch_watch_get_sample() read from this copy.
 *
 * Returns: the number of processes or a negative errno.
 * Since: 0.1
 */
int memwatch_watch_snapshot(struct memwatch_watch *watch);

/**
 * memwatch_watch_get_row - get the verdict on one process of the snapshot
 * @watch: monitor
 * @index: from 0, in no particular order
 * @ret: filled in; @sz is set by the caller
 *
 * Returns: 1; 0 if there is no such index; -EINVAL.
 * Since: 0.1
 */
int memwatch_watch_get_row(struct memwatch_watch *watch, unsigned int index,
			   struct memwatch_growth_row *ret);

/**
 * memwatch_watch_get_sample - get the last sample of one process of the snapshot
 * @watch: monitor
 * @index: as for memwatch_watch_get_row()
 * @ret: filled in; @sz is set by the caller. Its @limit_bytes is the memory at which the nearest
 *	limit is reached
 * @cgroup: gets the id of its cgroup, or NULL
 *
 * Returns: 1; 0 if there is no such index; -EINVAL.
 * Since: 0.1
 */
int memwatch_watch_get_sample(struct memwatch_watch *watch, unsigned int index,
			      struct memwatch_growth_sample *ret, __u64 *cgroup);

/**
 * memwatch_watch_limit_name - name of a limit in words
 * @limit: &enum memwatch_limit
 *
 * Returns: for example "memory.max of its cgroup"; "its limit" if it is not known.
 * Since: 0.1
 */
const char *memwatch_watch_limit_name(unsigned int limit);

/**
 * memwatch_watch_save - write all states and histories to a file
 * @watch: monitor
 * @path: replaced by renaming, so the file is never incomplete. Nothing is written
 *	through a symbolic link, and only this user can read the file
 *
 * Returns: 0 or a negative errno.
 * Since: 0.1
 */
int memwatch_watch_save(struct memwatch_watch *watch, const char *path);

/**
 * memwatch_watch_load - read states and histories from a file
 * @watch: monitor, before its first round
 * @path: written by memwatch_watch_save()
 *
 * Processes that still run continue where they stood; the time in between counts as time
 * without samples. What the file says about other processes is dropped at the first round.
 * Cgroups that still have processes continue too, and the machine. A file of a version that
 * kept no cgroups is read.
 * A file is refused as a whole if it is of another boot or another version, if any part of
 * it is not valid, or if another user could have written it.
 *
 * Returns: the number of processes; -ENOENT; -ESTALE if the file is of another boot or
 * version; -EBADMSG if it is damaged; -EPERM if another user could have written it; -ENOMSG,
 * -EISDIR or -EINVAL if it is no state file, but another one, a folder or a device.
 * Since: 0.1
 */
int memwatch_watch_load(struct memwatch_watch *watch, const char *path);

/**
 * memwatch_watch_get_stats - get what the monitor does and costs
 * @watch: monitor
 * @ret: filled in; @sz is set by the caller
 *
 * Returns: 0 or -EINVAL.
 * Since: 0.1
 */
int memwatch_watch_get_stats(struct memwatch_watch *watch, struct memwatch_watch_stats *ret);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_WATCH_H */
