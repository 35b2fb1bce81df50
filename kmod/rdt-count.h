/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * From the value of the RDT counter register to bytes and a status. This file
 * uses no MSR, no lock and no clock. It is also built in user space, where it
 * is tested.
 *
 * A bandwidth counter is narrow, starts at any value and wraps. Only the
 * difference of two readings is used, provided that it wrapped at most once in
 * between. The sum since the RMID was given to its owner is kept in units of
 * the register and scaled when it is reported, so that rounding errors do not
 * add up.
 *
 * A value that may be wrong is never reported as exact. Where the count of an
 * interval is missing, a new baseline is taken, and the reading has the status
 * ESTIMATED: it is a lower bound.
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

/* Bits of QM_CTR that are not data. */
#define MW_QM_CTR_ERROR	      (1ULL << 63)
#define MW_QM_CTR_UNAVAILABLE (1ULL << 62)

/* The bandwidth events, total and local, follow the occupancy in the order of events. */
#define MW_RDT_TRAFFIC 2

/**
 * struct mw_rdt_format - how to read the counter register of this machine
 * @events: MEMWATCH_FEATURE_* bits of the supported events
 * @width: bits of a bandwidth counter, 24 to 62
 * @scale: bytes per unit
 * @has_overflow: bit 61 is an overflow flag, not data
 * @restarts: a counter that was unavailable restarts at 0 (AMD)
 * @cf_threshold: RMIDs above this one need the correction
 * @cf: correction factor for bandwidth, times 2^20
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
 * struct mw_rdt_count - readings of one RMID in one L3 domain
 * @generation: generation of the owner that @sum belongs to
 * @known: bit N is set if @prev[N] is a baseline
 * @lapsed: bit N is set if counter N was unavailable since @prev[N] was read
 * @status: &enum memwatch_status of each event at the last reading
 * @read_ns: time of the last reading, 0 if there was none
 * @uncounted: generation + 1 of an owner some of whose traffic was not counted, because the
 * 	RMID had no assignable counters, or held cache when the CPUs of the domain went
 * 	offline; 0 if there is none. It may be written at any time.
 * @ran_ns: the RMID did not run between @read_ns and this time; 0 if it did not
 * 	run since @read_ns
 * @prev: bandwidth counters at the last good reading
 * @sum: units counted since the RMID was given to its owner
 * @occupancy: bytes at the last good reading
 * @occupancy_ns: time of that reading
 */
struct mw_rdt_count {
	u32 generation;
	u8 known;
	u8 lapsed;
	u8 status[MEMWATCH_RDT_MAX];
	u64 uncounted;
	u64 read_ns;
	u64 ran_ns;
	u64 prev[MW_RDT_TRAFFIC];
	u64 sum[MW_RDT_TRAFFIC];
	u64 occupancy;
	u64 occupancy_ns;
};

/**
 * struct mw_rdt_owner - the owner of an RMID when it is read
 * @generation: generation of the RMID; if it is free, that of its last owner
 * @free_ns: when the RMID was last freed
 * @settle_ns: the longest time until a domain learns that an RMID ran
 * @uncounted: mw_rdt_count_take_uncounted() of it, from before the registers were read
 */
struct mw_rdt_owner {
	u32 generation;
	u64 free_ns;
	u64 settle_ns;
	bool uncounted;
};

void mw_rdt_format_init(struct mw_rdt_format *format, u32 eax, u32 ebx, u32 edx, bool amd);
void mw_rdt_format_correct(struct mw_rdt_format *format, u32 max_rmid);

u8 mw_rdt_decode(const struct mw_rdt_format *format, u64 reg, u64 *data);
u64 mw_rdt_delta(const struct mw_rdt_format *format, u64 from, u64 to);
u64 mw_rdt_bytes(const struct mw_rdt_format *format, u32 rmid, u64 units, bool traffic);

void mw_rdt_count_begin(struct mw_rdt_count *count, const struct mw_rdt_format *format,
			const u64 *reg, const struct mw_rdt_owner *owner, u64 now);
bool mw_rdt_count_read(struct mw_rdt_count *count, const struct mw_rdt_format *format,
		       const u64 *reg, const struct mw_rdt_owner *owner, u64 now);
void mw_rdt_count_restart(struct mw_rdt_count *count);
bool mw_rdt_count_take_uncounted(struct mw_rdt_count *count, u32 generation);
void mw_rdt_count_show(const struct mw_rdt_count *count, const struct mw_rdt_format *format,
		       u32 rmid, struct memwatch_record_rdt *rec);

/* The RMID ran at some time after @since. */
static inline void mw_rdt_count_ran(struct mw_rdt_count *count, u64 since)
{
	if (!count->ran_ns)
		count->ran_ns = since | !since;
}

#endif /* _MW_RDT_COUNT_H */
