/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the growth detectors read and keep of every process: a sample, and the state
 * that the samples update. A process that has grown has a history as well, see
 * growth-history.h.
 */
#ifndef _MW_GROWTH_STATE_H
#define _MW_GROWTH_STATE_H

#include "growth-units.h"

/* Points that are kept of an episode; a power of two, so that a mask bounds an index. */
#define MW_GROWTH_POINTS 8U

/* What is thought of a process; as enum memwatch_growth_verdict. */
enum mw_growth_verdict {
	MW_GROWTH_INSUFFICIENT = 0,
	MW_GROWTH_STABLE = 1,
	MW_GROWTH_GROWING = 2,
	MW_GROWTH_LEAK = 3,
};

/* The rule that raised an alert; as enum memwatch_growth_reason. */
enum mw_growth_reason {
	MW_GROWTH_NONE = 0,
	MW_GROWTH_LIMIT = 1,	 /* the growth is steady and the limit is near */
	MW_GROWTH_HEIGHT = 2,	 /* for hours, more than in the whole week before */
	MW_GROWTH_UNTOUCHED = 3, /* what it has gained for 40 minutes is not used any more */
};

/* What one call of mw_growth_feed() changed. */
#define MW_GROWTH_EVENT_ALERT  (1U << 0)
#define MW_GROWTH_EVENT_CLEAR  (1U << 1)
#define MW_GROWTH_EVENT_NOTICE (1U << 2)
#define MW_GROWTH_EVENT_SETTLE (1U << 3)
#define MW_GROWTH_EVENT_TOUCH  (1U << 4)

/* Flags of struct mw_growth. */
#define MW_GROWTH_F_ALERT    (1U << 0) /* an alert is raised and not cleared */
#define MW_GROWTH_F_HISTORY  (1U << 1) /* has grown, and needs a history */
#define MW_GROWTH_F_RESERVED (1U << 2) /* address space grows without memory behind it */
#define MW_GROWTH_F_NOTICE   (1U << 3) /* a notice is raised and has not ended */
#define MW_GROWTH_F_TOUCH    (1U << 4) /* it has been said how much of the growth is cold */
#define MW_GROWTH_F_WARM     (1U << 5) /* surely less than half of the growth is cold */
#define MW_GROWTH_F_STARTING (1U << 6) /* it may be starting, see mw_growth_is_starting() */
#define MW_GROWTH_F_KNOWN    (1U << 7) /* its program has reached its limit before */

/* Indices of &struct mw_growth.score. */
enum mw_growth_detector {
	MW_GROWTH_TREND = 0,
	MW_GROWTH_COMPOSITION = 1,
	MW_GROWTH_THRESHOLD = 2,
	MW_GROWTH_DETECTORS = 3,
};

/**
 * struct mw_growth_touch - how much of what a process has gained is cold, in pages: not touched
 *	any more since shortly after it was gained
 * @gained: gained while a notice held, and old enough to tell; 0: it is not known
 * @cold: how much of @gained is cold
 * @cold_low: lower end of its 95 % confidence interval
 * @cold_high: upper end
 * @untouched_s: for at least so many seconds it was not touched; if @gained is 0, the process is
 *	followed, and it will be known later; 0: it is not followed
 */
struct mw_growth_touch {
	__u32 gained;
	__u32 cold;
	__u32 cold_low;
	__u32 cold_high;
	__u32 untouched_s;
};

/**
 * struct mw_growth_sample - one reading of the counters of one process, in pages
 * @time_ns: not before the previous sample of the process
 * @file: mapped file pages
 * @anon: anonymous pages
 * @swap: pages in swap
 * @shmem: pages of shared memory
 * @vsz: address space; saturates at the largest value
 * @headroom: pages until the nearest limit, or MW_GROWTH_NO_LIMIT
 * @touch: what is known of the pages that were gained
 * @reserved: zero
 */
struct mw_growth_sample {
	__u64 time_ns;
	__u32 file;
	__u32 anon;
	__u32 swap;
	__u32 shmem;
	__u32 vsz;
	__u32 headroom;
	struct mw_growth_touch touch;
	__u32 reserved;
};

/**
 * struct mw_growth_point - a maximum that an episode reached
 * @ms: milliseconds since the onset of the episode
 * @pages: the signal
 */
struct mw_growth_point {
	__u32 ms;
	__u32 pages;
};

/**
 * struct mw_growth - what is kept of every process; its age counts from the first sample
 * @first_ns: time of the first sample
 * @last_ns: time of the last sample
 * @onset_ns: onset of the episode
 * @top_ns: when the episode last reached a new maximum
 * @alert_ns: first alert; 0: there was none
 * @notice_ns: first notice; 0: there was none
 * @slope_bps: slope at the newest alert, in bytes per second
 * @signal: last signal: anonymous + swapped + shared pages
 * @file: last number of mapped file pages
 * @vsz: last address space, in pages
 * @vsz_floor: lowest address space since the first two minutes, in which libraries are mapped
 * @headroom: last headroom, in pages
 * @floor: lowest signal ever
 * @ceiling: highest signal before the episode
 * @top: highest signal of the episode
 * @base: signal from which the growth of a notice is counted
 * @base_s: age at which @base began to be the lowest signal, or at which the notice was raised
 * @rise: highest signal that a notice has seen
 * @rise_s: age at which a notice last saw a new maximum
 * @jump: about the largest rise from one sample to the next lately: it is forgotten with a
 *	half-life of 22 samples
 * @alert_from: signal at the start of the growth that raised the alert
 * @alert_top: highest signal since the alert
 * @alert_s: age at which the newest alert was raised
 * @progress_s: age at which the signal last reached a new maximum during that alert
 * @eta_s: at the newest alert, seconds to the limit
 * @gap_ms: minimum time between two points
 * @point: maxima of the episode, the first at its onset; thinned out as it gets longer
 * @points: number of points
 * @flags: MW_GROWTH_F_*
 * @reason: &enum mw_growth_reason of the alert
 * @verdict: &enum mw_growth_verdict
 * @confidence: chance that this is a leak, 0 to 100 percent
 * @score: score of each &enum mw_growth_detector, 0 to 100
 * @origin: index of the first point from which the episode has not slowed down
 * @reserved: zero
 * @followed_min: minutes from the notice until touch was followed, and 1; 0: it is not, or not yet
 */
struct mw_growth {
	__u64 first_ns;
	__u64 last_ns;
	__u64 onset_ns;
	__u64 top_ns;
	__u64 alert_ns;
	__u64 notice_ns;
	__u64 slope_bps;
	__u32 signal;
	__u32 file;
	__u32 vsz;
	__u32 vsz_floor;
	__u32 headroom;
	__u32 floor;
	__u32 ceiling;
	__u32 top;
	__u32 base;
	__u32 base_s;
	__u32 rise;
	__u32 rise_s;
	__u32 jump;
	__u32 alert_from;
	__u32 alert_top;
	__u32 alert_s;
	__u32 progress_s;
	__u32 eta_s;
	__u32 gap_ms;
	struct mw_growth_point point[MW_GROWTH_POINTS];
	__u8 points;
	__u8 flags;
	__u8 reason;
	__u8 verdict;
	__u8 confidence;
	__u8 score[MW_GROWTH_DETECTORS];
	__u8 origin;
	__u8 reserved;
	__u16 followed_min;
};

/* Seconds from the first sample to the last. */
MW_INLINE __u32 mw_growth_age_s(const struct mw_growth *g)
{
	return (__u32)((g->last_ns - g->first_ns) / MW_GROWTH_SECOND);
}

/* The signal of a sample: memory that only the process itself can give back. */
MW_INLINE __u32 mw_growth_signal(const struct mw_growth_sample *sample)
{
	return mw_growth_add_sat(sample->anon, mw_growth_add_sat(sample->swap, sample->shmem));
}

#endif /* _MW_GROWTH_STATE_H */
