/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Metrics: what is measured of a process. One table describes them all: CPU time, the
 * hardware counters, the values of RDT, and ratios of two counters. Programs that show
 * or store metrics walk over this table instead of naming each one, so that a new
 * counter appears in their output by itself.
 */
#ifndef MEMWATCH_METRIC_H
#define MEMWATCH_METRIC_H

#include <stddef.h>

#include <linux/memwatch.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * enum memwatch_metric_source - where a metric comes from
 * @MEMWATCH_METRIC_ACCOUNT: the library computes it from several records
 * @MEMWATCH_METRIC_COUNTER: a hardware counter, in sample records
 * @MEMWATCH_METRIC_RDT: an RDT event, in RDT records
 * @MEMWATCH_METRIC_RATIO: one counter divided by another
 */
enum memwatch_metric_source {
	MEMWATCH_METRIC_ACCOUNT = 0,
	MEMWATCH_METRIC_COUNTER = 1,
	MEMWATCH_METRIC_RDT = 2,
	MEMWATCH_METRIC_RATIO = 3,
};

/**
 * enum memwatch_account - what the library computes, see @MEMWATCH_METRIC_ACCOUNT
 * @MEMWATCH_ACCOUNT_CPU_TIME: CPU time
 * @MEMWATCH_ACCOUNT_OCCUPANCY_MAX: largest occupancy
 * @MEMWATCH_ACCOUNT_RESIDUE: residual occupancy
 * @MEMWATCH_ACCOUNT_MEASURED: share of the run time that was measured
 */
enum memwatch_account {
	MEMWATCH_ACCOUNT_CPU_TIME = 0,
	MEMWATCH_ACCOUNT_OCCUPANCY_MAX = 1,
	MEMWATCH_ACCOUNT_RESIDUE = 2,
	MEMWATCH_ACCOUNT_MEASURED = 3,
};

/**
 * enum memwatch_unit - the unit of a metric
 * @MEMWATCH_UNIT_COUNT: events
 * @MEMWATCH_UNIT_BYTES: bytes
 * @MEMWATCH_UNIT_NS: nanoseconds
 * @MEMWATCH_UNIT_RATIO: a quotient without a unit
 * @MEMWATCH_UNIT_PPM: a share in parts per million
 */
enum memwatch_unit {
	MEMWATCH_UNIT_COUNT = 0,
	MEMWATCH_UNIT_BYTES = 1,
	MEMWATCH_UNIT_NS = 2,
	MEMWATCH_UNIT_RATIO = 3,
	MEMWATCH_UNIT_PPM = 4,
};

#define MEMWATCH_METRIC_LEVEL  (1U << 0) /* a level such as cache occupancy, not a sum */
#define MEMWATCH_METRIC_DETAIL (1U << 1) /* for programs; tables for people leave it out */

/**
 * struct memwatch_metric_info - the description of a metric
 * @sz: size of this structure in the library; members beyond it do not exist
 * @key: name in JSON and CSV, such as "llc_misses"; identifies the metric for ever
 * @sort_name: name as a sort key of a command, such as "llc-misses"; NULL if none
 * @title: name in a sentence, such as "LLC misses"
 * @heading: heading of a column, such as "LLC MISS"
 * @help: what it measures, as one sentence without a full stop
 * @source: &enum memwatch_metric_source
 * @index: &enum memwatch_account, &enum memwatch_counter or &enum memwatch_rdt_event, as the
 *	source says; the dividend (&enum memwatch_counter) of a ratio
 * @divisor: &enum memwatch_counter by which a ratio divides
 * @unit: &enum memwatch_unit
 * @flags: MEMWATCH_METRIC_*
 * @sort: key for memwatch_summary_sort(); 0 if rows cannot be sorted by it
 * @event_type: type of the perf event of a counter, as in &struct perf_event_attr
 * @event_config: config of the perf event of a counter
 */
struct memwatch_metric_info {
	size_t sz;
	const char *key;
	const char *sort_name;
	const char *title;
	const char *heading;
	const char *help;
	__u32 source;
	__u32 index;
	__u32 divisor;
	__u32 unit;
	__u32 flags;
	__u32 sort;
	__u32 event_type;
	__u64 event_config;
};

/**
 * memwatch_metric_at - describe one metric of the table
 * @position: counted from 0, in the order in which a report shows metrics; a later
 *	version of the library may insert metrics anywhere
 *
 * Returns: the description, valid for ever; NULL past the last metric.
 * Since: 0.1
 */
const struct memwatch_metric_info *memwatch_metric_at(unsigned int position);

/**
 * memwatch_metric_find - describe the metric that a counter or an RDT event gives
 * @source: MEMWATCH_METRIC_COUNTER or MEMWATCH_METRIC_RDT
 * @index: &enum memwatch_counter or &enum memwatch_rdt_event
 *
 * Returns: the description, valid for ever; NULL if there is none.
 * Since: 0.1
 */
const struct memwatch_metric_info *memwatch_metric_find(unsigned int source, unsigned int index);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_METRIC_H */
