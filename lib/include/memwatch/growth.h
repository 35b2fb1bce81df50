/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Growth: which processes leak, told before they are killed. Samples of a
 * process's memory go in, verdicts come out. The arithmetic is that of the BPF
 * programs (bpf/growth.h), bit for bit: a trace that is replayed here gets the
 * alerts that the kernel would have sent.
 *
 * VERDICT. "leak": an alert holds. "growing": grows, but not long, far or
 * steadily enough for an alert. "stable": does not grow. "insufficient": less
 * than a minute was seen. An alert is cleared when the growth is given back or
 * rests for a quarter of the time it took, at least five minutes.
 *
 * CONFIDENCE is the chance, in percent, that the process leaks.
 *
 * TRACES are CSV with the head line
 *	time_s,pid,comm,anon_kb,file_kb,shmem_kb,swap_kb,vsz_kb,limit_kb
 * time_s is in seconds, with a fraction if wanted, and never falls; fields may
 * be quoted as in RFC 4180; limit_kb, the memory limit of the process, is empty
 * or 0 if there is none. Further columns are ignored.
 */
#ifndef MEMWATCH_GROWTH_H
#define MEMWATCH_GROWTH_H

#include <stddef.h>

#include <linux/memwatch.h>
#include <memwatch/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

/* No limit, or a limit that will not be reached. */
#define MEMWATCH_GROWTH_NONE	 (~0ULL)

#define MEMWATCH_GROWTH_COMM_MAX 64

/**
 * enum memwatch_growth_verdict - what is thought of a process
 */
enum memwatch_growth_verdict {
	MEMWATCH_GROWTH_INSUFFICIENT = 0,
	MEMWATCH_GROWTH_STABLE = 1,
	MEMWATCH_GROWTH_GROWING = 2,
	MEMWATCH_GROWTH_LEAK = 3,
};

/**
 * enum memwatch_growth_reason - why there is an alert
 * @MEMWATCH_GROWTH_REASON_NONE: there is none
 * @MEMWATCH_GROWTH_REASON_LIMIT: a limit is near and gets nearer steadily
 * @MEMWATCH_GROWTH_REASON_STEADY: steady growth for 20 minutes, or for 10 when a
 *	limit is less than an hour away
 * @MEMWATCH_GROWTH_REASON_SLOW: slow growth for more than a day
 */
enum memwatch_growth_reason {
	MEMWATCH_GROWTH_REASON_NONE = 0,
	MEMWATCH_GROWTH_REASON_LIMIT = 1,
	MEMWATCH_GROWTH_REASON_STEADY = 2,
	MEMWATCH_GROWTH_REASON_SLOW = 3,
};

/* What memwatch_growth_feed() returns: bits. */
#define MEMWATCH_GROWTH_ALERT 1 /* an alert was raised */
#define MEMWATCH_GROWTH_CLEAR 2 /* an alert was cleared */

/**
 * struct memwatch_growth_sample - memory of one process at one moment
 * @time_ns: of any clock that does not go back
 * @start_time_ns: of the process, 0 if not known. Another one is another
 *	process. If not known, another name with less memory than before is taken
 *	for an exec, and judged anew.
 * @tgid: process
 * @comm: its name
 * @anon_bytes: anonymous memory
 * @file_bytes: mapped files
 * @shmem_bytes: shared memory
 * @swap_bytes: swapped out
 * @vsz_bytes: address space
 * @limit_bytes: memory that it may have, MEMWATCH_GROWTH_NONE without a limit
 */
struct memwatch_growth_sample {
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
};

/**
 * struct memwatch_growth_row - what is known of one process
 * @sz: sizeof(struct memwatch_growth_row)
 * @tgid: process
 * @verdict: &enum memwatch_growth_verdict
 * @reason: &enum memwatch_growth_reason of the alert that holds
 * @confidence: 0 to 100, see CONFIDENCE
 * @trend_score: lower envelope rises along a line, 0 to 100
 * @composition_score: share of anonymous, swapped and shared memory in what grew
 * @threshold_score: nearness of a limit; 100: within minutes, 0: more than a day
 * @flags: MEMWATCH_GROWTH_F_*
 * @limit: &enum memwatch_limit that @room_bytes is the distance to; 0 in a replay
 * @comm: its name
 * @start_time_ns: as in the samples
 * @first_ns: first sample
 * @last_ns: last sample
 * @first_alert_ns: first alert, or MEMWATCH_GROWTH_NONE
 * @since_ns: since when it grows, as far as is remembered
 * @alert_slope: bytes a second, at the first alert
 * @alert_eta_ns: time to the limit, at the first alert, or MEMWATCH_GROWTH_NONE
 * @slope: bytes a second, now; 0: does not grow
 * @r2_permille: of the line that @slope is from
 * @eta_ns: time to the limit from now, or MEMWATCH_GROWTH_NONE
 * @eta_low_ns: the least that is likely (95 %)
 * @eta_high_ns: the most that is likely, or MEMWATCH_GROWTH_NONE
 * @growth_bytes: what the window or streak that @slope is from has gained
 * @signal_bytes: anonymous + swapped + shared, now
 * @file_bytes: mapped files, now
 * @vsz_bytes: address space, now
 * @room_bytes: until the nearest limit, or MEMWATCH_GROWTH_NONE
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
};

#define MEMWATCH_GROWTH_F_RESERVED (1U << 0) /* address space grows, memory does not */

/**
 * struct memwatch_growth - the detectors and the processes they watch
 */
struct memwatch_growth;

/**
 * memwatch_growth_new - start without knowing any process
 * @ctx: context
 * @ret: caller frees with memwatch_growth_unref()
 *
 * Returns: 0 or -ENOMEM.
 * Since: 0.1
 */
int memwatch_growth_new(struct memwatch_ctx *ctx, struct memwatch_growth **ret);

/**
 * memwatch_growth_unref - free; NULL is fine
 * @growth: detectors
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_growth *memwatch_growth_unref(struct memwatch_growth *growth);

/**
 * memwatch_growth_feed - one sample
 * @growth: detectors
 * @sample: the sample
 *
 * Returns: 0; MEMWATCH_GROWTH_ALERT; MEMWATCH_GROWTH_CLEAR; -EINVAL, the time is
 * before that of the process's last sample; -ENOMEM.
 * Since: 0.1
 */
int memwatch_growth_feed(struct memwatch_growth *growth,
			 const struct memwatch_growth_sample *sample);

/**
 * memwatch_growth_row - what is known of a process
 * @growth: detectors
 * @index: from 0, in the order of the first samples; the same process keeps its
 *	index
 * @ret: filled in; @sz is set by the caller
 *
 * Returns: 1; 0 if @index is past the last; -EINVAL.
 * Since: 0.1
 */
int memwatch_growth_row(struct memwatch_growth *growth, unsigned int index,
			struct memwatch_growth_row *ret);

/**
 * memwatch_growth_verdict_name - as in JSON
 * @verdict: &enum memwatch_growth_verdict
 *
 * Returns: "insufficient", "stable", "growing", "leak", or "unknown".
 * Since: 0.1
 */
const char *memwatch_growth_verdict_name(unsigned int verdict);

/**
 * memwatch_growth_reason_name - as in JSON
 * @reason: &enum memwatch_growth_reason
 *
 * Returns: "none", "limit", "steady", "slow", or "unknown".
 * Since: 0.1
 */
const char *memwatch_growth_reason_name(unsigned int reason);

/**
 * struct memwatch_trace - a trace that is being read
 */
struct memwatch_trace;

/**
 * memwatch_trace_open - read a trace
 * @ctx: context
 * @path: file; "-" is standard input
 * @ret: caller closes with memwatch_trace_close()
 *
 * Returns: 0; -EBADMSG, there is no such head line; another negative errno.
 * Since: 0.1
 */
int memwatch_trace_open(struct memwatch_ctx *ctx, const char *path, struct memwatch_trace **ret);

/**
 * memwatch_trace_next - the next sample
 * @trace: the trace
 * @ret: the sample
 *
 * Returns: 1; 0 at the end; -EBADMSG for a line that is no sample, its number
 * and what is wrong with it being in memwatch_ctx_error(); -EIO.
 * Since: 0.1
 */
int memwatch_trace_next(struct memwatch_trace *trace, struct memwatch_growth_sample *ret);

/**
 * memwatch_trace_close - free; NULL is fine
 * @trace: the trace
 *
 * Since: 0.1
 */
void memwatch_trace_close(struct memwatch_trace *trace);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_GROWTH_H */
