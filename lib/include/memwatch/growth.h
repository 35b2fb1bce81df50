/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth detectors: samples of the memory of processes go in, verdicts come out. The
 * library and the BPF programs of the growth monitor compile the same detectors, so a
 * trace that is replayed here gets the alerts, bit for bit, that the kernel would have
 * sent, if that knew nothing of the programs from before the trace. A trace does not name users, so
 * programs of one name and limit are one here. docs/growth.md explains how the detectors work and
 * defines the terms.
 *
 * VERDICT. "leak": an alert holds. "growing": the process grows, but not yet long, far or
 * steadily enough for an alert. "stable": it does not grow. "insufficient": it was watched
 * for less than a minute. An alert is cleared when the growth is given back or has stopped
 * for long enough.
 *
 * CONFIDENCE is the chance, in percent, that the process leaks.
 *
 * TRACES are CSV files with the header line
 *	time_s,pid,comm,anon_kb,file_kb,shmem_kb,swap_kb,vsz_kb,limit_kb
 * time_s is in seconds, may have a fraction, and never decreases. Fields may be quoted as
 * in RFC 4180. limit_kb, the memory limit of the process, is empty or 0 if there is none.
 * More columns may follow in any order: cgroup, kernel_kb, slab_kb, sock_kb, pagetables_kb. A
 * line with the process id 0 and a cgroup is a sample of this cgroup, as <memwatch/groups.h>
 * divides it; "/" is the machine. cold_kb is the memory of a process that it has not touched for a
 * minute. With gained_kb, what it has gained since its notice, cold_kb is of that, and cold_low_kb,
 * cold_high_kb and untouched_s may follow. Other columns are ignored.
 */
#ifndef MEMWATCH_GROWTH_H
#define MEMWATCH_GROWTH_H

#include <stddef.h>

#include <linux/memwatch.h>
#include <memwatch/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

/* No value: there is no limit, it will not be reached, or there was no alert. */
#define MEMWATCH_GROWTH_NONE	 (~0ULL)

#define MEMWATCH_GROWTH_COMM_MAX 64

/**
 * enum memwatch_growth_verdict - the state of a process, see VERDICT
 * @MEMWATCH_GROWTH_INSUFFICIENT: not watched for long enough
 * @MEMWATCH_GROWTH_STABLE: does not grow
 * @MEMWATCH_GROWTH_GROWING: a notice holds: the process grows significantly; or its address space
 *	does, without memory behind it (MEMWATCH_GROWTH_F_RESERVED)
 * @MEMWATCH_GROWTH_LEAK: an alert holds
 */
enum memwatch_growth_verdict {
	MEMWATCH_GROWTH_INSUFFICIENT = 0,
	MEMWATCH_GROWTH_STABLE = 1,
	MEMWATCH_GROWTH_GROWING = 2,
	MEMWATCH_GROWTH_LEAK = 3,
};

/**
 * enum memwatch_growth_reason - the rule that raised an alert
 * @MEMWATCH_GROWTH_REASON_NONE: there is no alert
 * @MEMWATCH_GROWTH_REASON_LIMIT: a limit is near and the growth is steady
 * @MEMWATCH_GROWTH_REASON_HEIGHT: for hours, more memory than in the whole week before
 * @MEMWATCH_GROWTH_REASON_UNTOUCHED: for 40 minutes it has gained memory and not touched it again
 */
enum memwatch_growth_reason {
	MEMWATCH_GROWTH_REASON_NONE = 0,
	MEMWATCH_GROWTH_REASON_LIMIT = 1,
	MEMWATCH_GROWTH_REASON_HEIGHT = 2,
	MEMWATCH_GROWTH_REASON_UNTOUCHED = 3,
};

/* The bits that memwatch_growth_feed() returns. */
#define MEMWATCH_GROWTH_ALERT  1  /* an alert was raised */
#define MEMWATCH_GROWTH_CLEAR  2  /* an alert was cleared */
#define MEMWATCH_GROWTH_NOTICE 4  /* a notice was raised */
#define MEMWATCH_GROWTH_SETTLE 8  /* a notice has ended */
#define MEMWATCH_GROWTH_TOUCH  16 /* during a notice it became known how much is cold */

/**
 * struct memwatch_growth_sample - the memory of one process at one time
 * @sz: sizeof(struct memwatch_growth_sample)
 * @time_ns: time of any clock that does not go back
 * @start_time_ns: start time of the process, or 0 if it is not known. Another start time
 *	is another process. Without start times, another name together with less memory
 *	than before is taken for an exec, which begins a new state.
 * @tgid: process id
 * @comm: name of the process
 * @anon_bytes: anonymous memory
 * @file_bytes: mapped files
 * @shmem_bytes: shared memory
 * @swap_bytes: memory in swap
 * @vsz_bytes: address space
 * @limit_bytes: memory that the process may have, or MEMWATCH_GROWTH_NONE
 * @cgroup: cgroup of the process, NULL if it is not known. With a @tgid of 0 the sample is of this
 *	cgroup and all below it, or of the machine ("/")
 * @kernel_bytes: of a cgroup: memory of the kernel, with page tables and the slab that cannot be
 *	reclaimed
 * @slab_bytes: of a cgroup: slab that cannot be reclaimed
 * @sock_bytes: of a cgroup: buffers of sockets
 * @pagetables_bytes: of a cgroup: page tables
 * @gained_bytes: memory that it has gained since its notice and that is old enough to tell
 *	whether it is still used; 0: that is not known; MEMWATCH_GROWTH_NONE: @cold_bytes is of
 *	all memory of the process, and what of it was gained is for the detectors to find out
 * @cold_bytes: how much of that it has not touched any more since shortly after it was gained
 * @cold_low_bytes: lower end of the 95 % confidence interval of @cold_bytes
 * @cold_high_bytes: upper end
 * @untouched_ns: for at least this long it was not touched; if @gained_bytes is 0, what the process
 *	touches is followed, and will be known later; 0: it is not followed
 */
struct memwatch_growth_sample {
	size_t sz;
	__u64 time_ns;
	__u64 start_time_ns;
	__u32 tgid;
	char comm[MEMWATCH_GROWTH_COMM_MAX];
	__u64 anon_bytes;
	__u64 file_bytes;
	__u64 shmem_bytes;
	__u64 swap_bytes;
	__u64 vsz_bytes;
	__u64 limit_bytes;
	const char *cgroup;
	__u64 kernel_bytes;
	__u64 slab_bytes;
	__u64 sock_bytes;
	__u64 pagetables_bytes;
	__u64 gained_bytes;
	__u64 cold_bytes;
	__u64 cold_low_bytes;
	__u64 cold_high_bytes;
	__u64 untouched_ns;
};

/**
 * struct memwatch_growth_row - the verdict on one process and what it is based on
 * @sz: sizeof(struct memwatch_growth_row)
 * @tgid: process id
 * @verdict: &enum memwatch_growth_verdict
 * @reason: &enum memwatch_growth_reason of the current alert
 * @confidence: 0 to 100, see CONFIDENCE
 * @trend_score: how well the lower envelope of the signal follows a rising line, 0 to 100
 * @composition_score: percentage of anonymous, swapped and shared memory in the growth
 * @threshold_score: nearness of the limit, from 100 (minutes) to 0 (most of a day, or none)
 * @r2_permille: R squared of the line that @slope is from, in thousandths
 * @flags: MEMWATCH_GROWTH_F_*
 * @limit: &enum memwatch_limit that @room_bytes is the distance to; 0 in a replay
 * @comm: name of the process
 * @start_time_ns: start time, as in the samples
 * @first_ns: time of the first sample
 * @last_ns: time of the last sample
 * @first_notice_ns: time of the first notice, or MEMWATCH_GROWTH_NONE
 * @first_alert_ns: time of the first alert, or MEMWATCH_GROWTH_NONE
 * @since_ns: when the growth began, as far back as the history reaches; the beginning of the notice
 *	if @gained_bytes is not 0 and the reason is not height
 * @alert_slope: slope at the newest alert, in bytes per second
 * @alert_eta_ns: time to the limit at the newest alert, or MEMWATCH_GROWTH_NONE
 * @slope: present slope in bytes per second; 0: the process does not grow, or it is not
 *	MEMWATCH_GROWTH_STABLE and no slope could be computed
 * @eta_ns: time from now to the limit, or MEMWATCH_GROWTH_NONE
 * @eta_low_ns: lower end of its 95 % confidence interval, or MEMWATCH_GROWTH_NONE
 * @eta_high_ns: upper end, or MEMWATCH_GROWTH_NONE if there is none
 * @growth_bytes: growth since @since_ns
 * @signal_bytes: anonymous + swapped + shared memory now
 * @file_bytes: mapped files now
 * @vsz_bytes: address space now
 * @room_bytes: bytes until the nearest limit, or MEMWATCH_GROWTH_NONE
 * @gained_bytes: as in the samples; 0: it is not known
 * @cold_bytes: as in the samples, and so are the others
 * @cold_low_bytes: lower end of its interval
 * @cold_high_bytes: upper end
 * @untouched_ns: for at least this long it was not touched
 */
struct memwatch_growth_row {
	size_t sz;
	__u32 tgid;
	__u8 verdict;
	__u8 reason;
	__u8 confidence;
	__u8 trend_score;
	__u8 composition_score;
	__u8 threshold_score;
	__u16 r2_permille;
	__u32 flags;
	__u32 limit;
	char comm[MEMWATCH_GROWTH_COMM_MAX];
	__u64 start_time_ns;
	__u64 first_ns;
	__u64 last_ns;
	__u64 first_notice_ns;
	__u64 first_alert_ns;
	__u64 since_ns;
	__u64 alert_slope;
	__u64 alert_eta_ns;
	__u64 slope;
	__u64 eta_ns;
	__u64 eta_low_ns;
	__u64 eta_high_ns;
	__u64 growth_bytes;
	__u64 signal_bytes;
	__u64 file_bytes;
	__u64 vsz_bytes;
	__u64 room_bytes;
	__u64 gained_bytes;
	__u64 cold_bytes;
	__u64 cold_low_bytes;
	__u64 cold_high_bytes;
	__u64 untouched_ns;
};

#define MEMWATCH_GROWTH_F_RESERVED (1U << 0) /* address space grows without memory behind it */
/*
 * Within the hour before its notice, another process of the same name, user and limit had an alert
 * for the reason limit, came near that, and had not settled by then. So this one is not taken for
 * one that starts.
 */
#define MEMWATCH_GROWTH_F_KNOWN (1U << 1)

/**
 * struct memwatch_growth_span - from the beginning of a notice or an alert to its end
 * @sz: sizeof(struct memwatch_growth_span)
 * @level: MEMWATCH_GROWTH_NOTICE or MEMWATCH_GROWTH_ALERT
 * @reason: &enum memwatch_growth_reason; none for a notice
 * @start_ns: time of the sample that raised it
 * @end_ns: time of the sample that ended it, or MEMWATCH_GROWTH_NONE if it holds
 * @eta_ns: of an alert: time from its start to the limit, as estimated then, or
 *	MEMWATCH_GROWTH_NONE
 * @eta_low_ns: lower end of its 95 % confidence interval, or MEMWATCH_GROWTH_NONE
 * @eta_high_ns: upper end, or MEMWATCH_GROWTH_NONE if there is none
 */
struct memwatch_growth_span {
	size_t sz;
	__u32 level;
	__u32 reason;
	__u64 start_ns;
	__u64 end_ns;
	__u64 eta_ns;
	__u64 eta_low_ns;
	__u64 eta_high_ns;
};

/**
 * struct memwatch_growth - the detectors and the processes they watch
 */
struct memwatch_growth;

/**
 * memwatch_growth_new - create detectors that know no process
 * @ctx: context
 * @ret: caller frees with memwatch_growth_unref()
 *
 * Returns: 0 or -ENOMEM.
 * Since: 0.1
 */
int memwatch_growth_new(struct memwatch_ctx *ctx, struct memwatch_growth **ret);

/**
 * memwatch_growth_unref - free the detectors
 * @growth: detectors or NULL
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_growth *memwatch_growth_unref(struct memwatch_growth *growth);

/**
 * memwatch_growth_feed - feed one sample to the detectors
 * @growth: detectors
 * @sample: the sample
 *
 * Returns: what the sample changed, a set of MEMWATCH_GROWTH_ALERT, MEMWATCH_GROWTH_CLEAR,
 * MEMWATCH_GROWTH_NOTICE, MEMWATCH_GROWTH_SETTLE and MEMWATCH_GROWTH_TOUCH, mostly 0; -EINVAL if
 * the time is before that of the last sample of the process or @sz is not set; -E2BIG for a sample
 * of a newer library; -ENOMEM. Since: 0.1
 */
int memwatch_growth_feed(struct memwatch_growth *growth,
			 const struct memwatch_growth_sample *sample);

/**
 * memwatch_growth_get_row - get the verdict on one process
 * @growth: detectors
 * @index: from 0, in the order of the first samples; a process keeps its index
 * @ret: filled in; @sz is set by the caller
 *
 * Returns: 1; 0 if there is no such index; -EINVAL.
 * Since: 0.1
 */
int memwatch_growth_get_row(struct memwatch_growth *growth, unsigned int index,
			    struct memwatch_growth_row *ret);

/**
 * memwatch_growth_get_span - get a notice or an alert of one process
 * @growth: detectors
 * @index: the process, as for memwatch_growth_get_row()
 * @span: from 0, in the order of their beginnings
 * @ret: filled in; @sz is set by the caller
 *
 * Returns: 1; 0 if there is no such process or no such span; -EINVAL.
 * Since: 0.1
 */
int memwatch_growth_get_span(struct memwatch_growth *growth, unsigned int index, unsigned int span,
			     struct memwatch_growth_span *ret);

/**
 * memwatch_growth_verdict_name - name of a verdict, as in the JSON output
 * @verdict: &enum memwatch_growth_verdict
 *
 * Returns: "insufficient", "stable", "growing", "leak", or "unknown".
 * Since: 0.1
 */
const char *memwatch_growth_verdict_name(unsigned int verdict);

/**
 * memwatch_growth_reason_name - name of a reason, as in the JSON output
 * @reason: &enum memwatch_growth_reason
 *
 * Returns: "none", "limit", "height", "untouched", or "unknown".
 * Since: 0.1
 */
const char *memwatch_growth_reason_name(unsigned int reason);

/**
 * struct memwatch_trace - a trace that is being read
 */
struct memwatch_trace;

/**
 * memwatch_trace_open - open a trace
 * @ctx: context
 * @path: file; "-" is standard input
 * @ret: caller closes with memwatch_trace_close()
 *
 * Returns: 0; -EBADMSG if the header line is not that of a trace; another negative errno.
 * Since: 0.1
 */
int memwatch_trace_open(struct memwatch_ctx *ctx, const char *path, struct memwatch_trace **ret);

/**
 * memwatch_trace_next - read the next sample
 * @trace: the trace
 * @ret: filled in; @sz is set by the caller. @cgroup is valid until the next call
 *
 * Returns: 1; 0 at the end; -EINVAL, @sz is not set; -EBADMSG for a line that is not a sample:
 * memwatch_ctx_error() says which line and why; -EIO.
 * Since: 0.1
 */
int memwatch_trace_next(struct memwatch_trace *trace, struct memwatch_growth_sample *ret);

/**
 * memwatch_trace_close - close a trace
 * @trace: the trace or NULL
 *
 * Since: 0.1
 */
void memwatch_trace_close(struct memwatch_trace *trace);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_GROWTH_H */
