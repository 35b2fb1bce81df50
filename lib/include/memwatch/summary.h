/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Summaries: slots added up by process, cgroup, RMID, CPU or slot, for live tables and for
 * reports of recordings alike. Memory grows with the number of rows and of RMIDs in them, not
 * with the number of processes that share a row.
 *
 * OCCUPANCY is a level, and its mean is weighted by time. A reading of an RMID holds until the
 * next one of the same RMID and L3 domain, until the RMID is freed, or to the end of the last slot.
 * The level of a row is the sum of what holds for its RMIDs, or by slot for all RMIDs, and its mean
 * is over the time in which at least one reading holds. What was read before @from_ns, or before
 * memwatch_summary_reset(), still holds. Readings after the end of the process do not count.
 */
#ifndef MEMWATCH_SUMMARY_H
#define MEMWATCH_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>

#include <linux/memwatch.h>
#include <memwatch/ctx.h>
#include <memwatch/metric.h>
#include <memwatch/slots.h>
#include <memwatch/value.h>

#ifdef __cplusplus
extern "C" {
#endif

struct memwatch_summary;

/**
 * enum memwatch_summary_by - what makes a row
 * @MEMWATCH_BY_PROCESS: a process, by tgid and start time. RMID 0, generation 0, is one row, and
 *	each assignment whose process is not known is one row.
 * @MEMWATCH_BY_CGROUP: a cgroup, by its id; id 0 is all that is unassigned or unknown
 * @MEMWATCH_BY_RMID: an assignment, by RMID and generation
 * @MEMWATCH_BY_CPU: a CPU; the slots must be made with MEMWATCH_SLOTS_PER_CPU. RDT values are
 *	unavailable in these rows, but for an estimated bandwidth (MEMWATCH_SLOTS_ESTIMATE).
 * @MEMWATCH_BY_SLOT: a slot
 */
enum memwatch_summary_by {
	MEMWATCH_BY_PROCESS = 0,
	MEMWATCH_BY_CGROUP = 1,
	MEMWATCH_BY_RMID = 2,
	MEMWATCH_BY_CPU = 3,
	MEMWATCH_BY_SLOT = 4,
};

/**
 * struct memwatch_summary_opts - options of memwatch_summary_new()
 * @sz: sizeof(struct memwatch_summary_opts)
 * @by: &enum memwatch_summary_by
 * @rows_max: how many rows there may be; all that does not fit is added up in one row with
 *	the flag MEMWATCH_ROW_OTHER, so that totals stay right. Default 1048576.
 * @from_ns: only slots that begin at or after it; default 0
 * @to_ns: only slots that begin before it; default: no end
 * @rmids_max: how many RMIDs the lists of all rows may have together; further ones are added
 *	up in their rows but not listed, and by cgroup their processes are not counted. Default
 *	2097152.
 * @reserved: 0
 */
struct memwatch_summary_opts {
	size_t sz;
	__u32 by;
	__u32 rows_max;
	__u64 from_ns;
	__u64 to_ns;
	__u32 rmids_max;
	__u32 reserved;
};

/**
 * memwatch_summary_new - create an empty summary
 * @ctx: context
 * @opts: options or NULL
 * @ret: the summary; caller frees with memwatch_summary_unref()
 *
 * Returns: 0, -EINVAL, -ENOMEM, -E2BIG.
 * Since: 0.1
 */
int memwatch_summary_new(struct memwatch_ctx *ctx, const struct memwatch_summary_opts *opts,
			 struct memwatch_summary **ret);

/**
 * memwatch_summary_unref - free
 * @summary: summary or NULL
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_summary *memwatch_summary_unref(struct memwatch_summary *summary);

/**
 * memwatch_summary_reset - remove all rows, keep the options
 * @summary: summary
 *
 * Since: 0.1
 */
void memwatch_summary_reset(struct memwatch_summary *summary);

/**
 * memwatch_summary_feed - add a slot
 * @summary: summary
 * @slot: from memwatch_slots_next(); copied as far as needed
 *
 * Returns: 1, added; 0, outside the range; -ENOMEM.
 * Since: 0.1
 */
int memwatch_summary_feed(struct memwatch_summary *summary, const struct memwatch_slot *slot);

/* One RMID in a row's list, from memwatch_summary_rmid_at(). */
struct memwatch_summary_rmid {
	__u32 rmid;
	__u32 generation;
};

#define MEMWATCH_ROW_UNASSIGNED (1U << 0) /* RMID 0, generation 0 */
#define MEMWATCH_ROW_UNKNOWN	(1U << 1) /* an RMID whose assignment was not seen */
#define MEMWATCH_ROW_OTHER	(1U << 2) /* all that does not fit: rows_max, MEMWATCH_RMID_OTHER */
#define MEMWATCH_ROW_LATE	(1U << 3) /* by slot: a late slot, MEMWATCH_SLOT_LATE */

/**
 * struct memwatch_summary_row - one row; only the library makes rows
 * @flags: MEMWATCH_ROW_*
 * @tgid: by process, and by RMID if the process is known
 * @start_time_ns: likewise; start of the process in CLOCK_BOOTTIME
 * @uid: likewise; user of the process
 * @cpu: by CPU; otherwise MEMWATCH_CPU_ANY
 * @cgroup_id: by process, RMID and cgroup
 * @comm: latest name of the process; by cgroup: of the process that was seen last
 * @nr_rmids: number of RMIDs in this row; 0 by CPU and by slot
 * @processes: by cgroup: number of assignments with a known process; otherwise 1 or 0
 * @slots: number of slots in which it ran
 * @first_ns: begin of the first of them; by slot: begin of the slot, even if nothing ran in it
 * @last_ns: end of the last of them; by slot: end of the slot
 * @samples: how many samples, or parts of samples, were added
 * @cpu_time_ns: CPU time
 * @occupancy_mean: occupied bytes of the cache, the mean over the time in which they are known,
 *	see OCCUPANCY; UNAVAILABLE if they never are
 * @occupancy_max: occupied bytes of the cache, the most at any time
 * @residue: residual occupancy of its RMIDs at their allocations, in bytes; UNAVAILABLE if no
 *	allocation with RDT was seen
 * @mbm_total: bytes moved to and from memory
 * @mbm_local: bytes moved to and from memory of the local NUMA node
 * @measured_ppm: by process and cgroup: the share of the run time for which there was an RMID, in
 *	parts per million, up to the last allocation. If it is less than all, the status of
 *	the sums is MULTIPLEXED: they are what was measured, and are not scaled up.
 *	UNAVAILABLE if it is not known; the sums are then ESTIMATED
 *
 * memwatch_summary_counter_at() gives the hardware counters, memwatch_summary_rmid_at() the RMIDs,
 * and memwatch_summary_value() the value of any metric of the table in memwatch/metric.h.
 */
struct memwatch_summary_row {
	__u32 flags;
	__u32 tgid;
	__u64 start_time_ns;
	__u32 uid;
	__u32 cpu;
	__u64 cgroup_id;
	char comm[MEMWATCH_COMM_LEN];
	__u32 nr_rmids;
	__u32 processes;
	__u64 slots;
	__u64 first_ns;
	__u64 last_ns;
	__u64 samples;
	struct memwatch_value cpu_time_ns;
	struct memwatch_value occupancy_mean;
	struct memwatch_value occupancy_max;
	struct memwatch_value residue;
	struct memwatch_value mbm_total;
	struct memwatch_value mbm_local;
	struct memwatch_value measured_ppm;
};

/**
 * memwatch_summary_counter_at - the sum of a hardware counter in a row
 * @row: a row
 * @counter: &enum memwatch_counter
 *
 * Returns: valid as long as @row; NULL: the library knows no such counter.
 * Since: 0.1
 */
const struct memwatch_value *memwatch_summary_counter_at(const struct memwatch_summary_row *row,
							 unsigned int counter);

/**
 * memwatch_summary_rmid_at - an RMID in a row
 * @row: a row
 * @index: counted from 0, in order of appearance; each RMID is there once, with its newest
 *	generation, and each generation of RMID 0 (of a cgroup these are only counted)
 *
 * Returns: valid as long as @row; NULL past the last one.
 * Since: 0.1
 */
const struct memwatch_summary_rmid *memwatch_summary_rmid_at(const struct memwatch_summary_row *row,
							     unsigned int index);

/**
 * enum memwatch_summary_key - what rows are sorted by
 * @MEMWATCH_SORT_NONE: order of appearance
 * @MEMWATCH_SORT_COUNTER: this number plus &enum memwatch_counter: a counter that has no
 *	key of its own here
 * Others: the member of that name; IPC is instructions / cycles.
 *
 * The key of a metric is in its description: &struct memwatch_metric_info.
 */
enum memwatch_summary_key {
	MEMWATCH_SORT_NONE = 0,
	MEMWATCH_SORT_CPU_TIME = 1,
	MEMWATCH_SORT_CYCLES = 2,
	MEMWATCH_SORT_INSTRUCTIONS = 3,
	MEMWATCH_SORT_LLC_REFERENCES = 4,
	MEMWATCH_SORT_LLC_MISSES = 5,
	MEMWATCH_SORT_OCCUPANCY = 6,
	MEMWATCH_SORT_MBM_TOTAL = 7,
	MEMWATCH_SORT_MBM_LOCAL = 8,
	MEMWATCH_SORT_SLOTS = 9,
	MEMWATCH_SORT_FIRST = 10,
	MEMWATCH_SORT_TGID = 11,
	MEMWATCH_SORT_COMM = 12,
	MEMWATCH_SORT_IPC = 13,
	MEMWATCH_SORT_CPU = 14,
	MEMWATCH_SORT_COUNTER = 256,
};

/**
 * memwatch_summary_sort - set the order of memwatch_summary_next(), and rewind
 * @summary: summary
 * @key: &enum memwatch_summary_key
 * @descending: largest first. Values that were not measured come last in both directions;
 *	rows with equal values keep their order of appearance.
 *
 * The order holds until the next feed.
 *
 * Returns: 0, -EINVAL, -ENOMEM.
 * Since: 0.1
 */
int memwatch_summary_sort(struct memwatch_summary *summary, unsigned int key, bool descending);

/**
 * memwatch_summary_next - walk over the rows
 * @summary: summary
 * @position: 0 to start; advanced by each call
 * @ret: a row; valid until the next feed, sort or reset
 *
 * Returns: 1, or 0 at the end.
 * Since: 0.1
 */
int memwatch_summary_next(struct memwatch_summary *summary, size_t *position,
			  const struct memwatch_summary_row **ret);

/**
 * memwatch_summary_get_total - all rows together
 * @summary: summary
 * @ret: a row without flags and identity, in which @slots counts every slot once; valid
 *	until the next feed, sort or reset
 *
 * Returns: 0.
 * Since: 0.1
 */
int memwatch_summary_get_total(struct memwatch_summary *summary,
			       const struct memwatch_summary_row **ret);

/**
 * memwatch_summary_value - the value of a metric in a row
 * @row: a row
 * @metric: from memwatch_metric_at()
 *
 * Returns: valid as long as @row; NULL for a ratio, which is the quotient of two counters.
 * Since: 0.1
 */
const struct memwatch_value *memwatch_summary_value(const struct memwatch_summary_row *row,
						    const struct memwatch_metric_info *metric);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_SUMMARY_H */
