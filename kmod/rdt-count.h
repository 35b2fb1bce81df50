/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * From what the RDT counter register says to bytes and a status. It knows
 * nothing of MSRs, locks and clocks, and compiles in user space, where it is
 * tested.
 *
 * A bandwidth counter is narrow, starts anywhere and wraps; what counts is the
 * difference of two readings, provided it wrapped at most once in between. All
 * that was moved since the RMID was given to its owner is kept in units of the
 * register and scaled when it is shown, so that no rounding adds up.
 *
 * A number that cannot be vouched for is never shown as if it could: where a
 * stretch is missing, the baseline is taken anew, and the reading says
 * ESTIMATED: a lower bound.
 */
#ifndef _MW_RDT_COUNT_H
#define _MW_RDT_COUNT_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stdint.h>
typedef uint64_t u64;
typedef uint32_t u32;
typedef int64_t s64;
typedef uint8_t u8;
#endif

#include <linux/memwatch.h>

/* Bandwidth: total and local, in the order of the events. */
#define MW_RDT_TRAFFIC 2

/**
 * struct mw_rdt_format - how to read the register of this machine
 * @events: MEMWATCH_FEATURE_* bits of the events there are
 * @width: bits of a bandwidth counter, 24 to 62
 * @scale: bytes per unit
 * @has_overflow: bit 61 is not data
 * @restarts: a counter that was unavailable restarts at 0 (AMD)
 * @cf_threshold: RMIDs above need the correction
 * @cf: the correction of bandwidth, times 2^20
 */
struct mw_rdt_format {
	u32 events;
	u32 width;
	u32 scale;
	bool has_overflow;
	bool restarts;
	u32 cf_threshold;
	u64 cf;
};

/**
 * struct mw_rdt_count - one RMID in one L3 domain
 * @generation: of the owner that @sum is about
 * @known: bit N: @prev[N] is a baseline
 * @lapsed: bit N: the counter was unavailable since
 * @status: &enum memwatch_status of each event at the last reading
 * @read_ns: when that was, 0 never
 * @ran_ns: nobody ran with the RMID between @read_ns and this time; 0: nobody
 *	ran since @read_ns
 * @prev: what the bandwidth counters showed
 * @sum: units since the RMID was given to its owner
 * @occupancy: bytes at the last reading that was good
 */
struct mw_rdt_count {
	u32 generation;
	u8 known;
	u8 lapsed;
	u8 status[MEMWATCH_RDT_MAX];
	u64 read_ns;
	u64 ran_ns;
	u64 prev[MW_RDT_TRAFFIC];
	u64 sum[MW_RDT_TRAFFIC];
	u64 occupancy;
};

/**
 * struct mw_rdt_owner - who owns the RMID when it is read
 * @generation: the latest; of a free RMID: its last owner's
 * @free_ns: when it was freed last
 * @settle_ns: a run becomes known at most so long after it
 */
struct mw_rdt_owner {
	u32 generation;
	u64 free_ns;
	u64 settle_ns;
};

void mw_rdt_format_init(struct mw_rdt_format *format, u32 eax, u32 ebx, u32 edx, bool amd);
void mw_rdt_format_correct(struct mw_rdt_format *format, u32 max_rmid);

u8 mw_rdt_decode(const struct mw_rdt_format *format, u64 reg, u64 *data);
u64 mw_rdt_delta(const struct mw_rdt_format *format, u64 from, u64 to);
u64 mw_rdt_bytes(const struct mw_rdt_format *format, u32 rmid, u64 units, bool traffic);

void mw_rdt_count_begin(struct mw_rdt_count *count, const struct mw_rdt_format *format,
			const u64 *reg, u32 generation, u64 now);
bool mw_rdt_count_read(struct mw_rdt_count *count, const struct mw_rdt_format *format,
		       const u64 *reg, const struct mw_rdt_owner *owner, u64 now);
void mw_rdt_count_show(const struct mw_rdt_count *count, const struct mw_rdt_format *format,
		       u32 rmid, struct memwatch_record_rdt *rec);

/* Somebody ran with the RMID, no earlier than @since. */
static inline void mw_rdt_count_ran(struct mw_rdt_count *count, u64 since)
{
	if (!count->ran_ns)
		count->ran_ns = since | !since;
}

#endif /* _MW_RDT_COUNT_H */
