/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Summaries: slots added up by what the user asks for. The same code behind
 * a live table and a report from a recording.
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
 * @MEMWATCH_BY_PROCESS: (tgid, start time); RMID 0 is one row, and so is each
 *	(rmid, generation) whose process is not known
 * @MEMWATCH_BY_CGROUP: cgroup id; 0 is everything unassigned or unknown
 * @MEMWATCH_BY_RMID: (rmid, generation)
 * @MEMWATCH_BY_CPU: CPU; the slots must be made with MEMWATCH_SLOTS_PER_CPU.
 *	RDT values are unavailable in these rows.
 * @MEMWATCH_BY_SLOT: slot
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
 * @rows_max: rows at most; what comes after is added up in one row flagged
 *	OTHER, so that totals stay right. Default 1048576.
 * @from_ns: only slots that begin at or after it; default 0
 * @to_ns: only slots that begin before it; default: no end
 */
struct memwatch_summary_opts {
	size_t sz;
	__u32 by;
	__u32 rows_max;
	__u64 from_ns;
	__u64 to_ns;
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

/* One assignment in a row's list. */
struct memwatch_summary_rmid {
	__u32 rmid;
	__u32 generation;
};

#define MEMWATCH_ROW_UNASSIGNED (1U << 0) /* RMID 0 */
#define MEMWATCH_ROW_UNKNOWN	(1U << 1) /* RMID of which no assignment was seen */
#define MEMWATCH_ROW_OTHER	(1U << 2) /* the rest, beyond rows_max */
#define MEMWATCH_ROW_LATE	(1U << 3) /* by slot: came after its slot was closed */

/**
 * struct memwatch_summary_row - one row
 * @flags: MEMWATCH_ROW_*
 * @tgid: by process, and by RMID if known
 * @start_time_ns: likewise, CLOCK_BOOTTIME
 * @uid: likewise
 * @cpu: by CPU; else MEMWATCH_CPU_ANY
 * @cgroup_id: by process, RMID and cgroup
 * @comm: latest name; by cgroup: of the process seen last
 * @rmids: the assignments in this row, in order of appearance; none by CPU and
 *	by slot
 * @nr_rmids: how many of them
 * @processes: by cgroup: different assignments; else 1 or 0
 * @slots: slots in which it ran at all
 * @first_ns: begin of the first of them; by slot: of the slot, also if nothing
 *	ran in it
 * @last_ns: end of the last of them, or of the slot
 * @samples: parts of samples in it
 * @cpu_time_ns: CPU time
 * @counter: increments, indexed by &enum memwatch_counter
 * @occupancy_mean: mean over the slots that have a reading; status
 *	UNAVAILABLE if none has
 * @occupancy_max: the largest of them
 * @residue: bytes that earlier owners of its RMIDs had left in the cache at the
 *	allocations; UNAVAILABLE if no allocation with RDT was seen
 * @mbm_total: bytes
 * @mbm_local: bytes
 *
 * The table of metrics (memwatch/metric.h) has a name for each measured member; see
 * memwatch_summary_value().
 */
struct memwatch_summary_row {
	__u32 flags;
	__u32 tgid;
	__u64 start_time_ns;
	__u32 uid;
	__u32 cpu;
	__u64 cgroup_id;
	char comm[MEMWATCH_COMM_LEN];
	const struct memwatch_summary_rmid *rmids;
	__u32 nr_rmids;
	__u32 processes;
	__u64 slots;
	__u64 first_ns;
	__u64 last_ns;
	__u64 samples;
	struct memwatch_value cpu_time_ns;
	struct memwatch_value counter[MEMWATCH_COUNTER_MAX];
	struct memwatch_value occupancy_mean;
	struct memwatch_value occupancy_max;
	struct memwatch_value residue;
	struct memwatch_value mbm_total;
	struct memwatch_value mbm_local;
};

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
 * @descending: largest first. Values that were not measured come last either
 *	way; equal ones in order of appearance.
 *
 * Holds until the next feed.
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
 * memwatch_summary_total - all rows together
 * @summary: summary
 * @ret: valid until the next feed, sort or reset; its flags and identity are
 *	empty, @slots counts every slot once
 *
 * Returns: 0.
 * Since: 0.1
 */
int memwatch_summary_total(struct memwatch_summary *summary,
			   const struct memwatch_summary_row **ret);

/**
 * memwatch_summary_value - the value of a metric in a row
 * @row: a row
 * @metric: from memwatch_metric_info()
 *
 * Returns: a member of @row; NULL for a ratio, which is the quotient of two members of
 * @row->counter.
 * Since: 0.1
 */
const struct memwatch_value *memwatch_summary_value(const struct memwatch_summary_row *row,
						    const struct memwatch_metric_info *metric);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_SUMMARY_H */
