// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The table of metrics. This is the only place that describes a counter: the relay takes
 * its perf event from here, recordings and commands take its names.
 */
#include <memwatch/metric.h>

#include <linux/perf_event.h>

#include <memwatch/summary.h>
#include <memwatch/value.h>

#define ACCOUNT(name) COMMON, .source = MEMWATCH_METRIC_ACCOUNT, .index = MEMWATCH_ACCOUNT_##name
#define COMMON	      .sz = sizeof(struct memwatch_metric_info)
#define RDT(name)     COMMON, .source = MEMWATCH_METRIC_RDT, .index = MEMWATCH_RDT_##name
#define COUNTER(name, event)                                                                       \
	COMMON, .source = MEMWATCH_METRIC_COUNTER, .index = MEMWATCH_COUNTER_##name,               \
		.event_type = PERF_TYPE_HARDWARE, .event_config = PERF_COUNT_HW_##event

static const struct memwatch_metric_info metrics[] = {
	{
		ACCOUNT(CPU_TIME),
		.key = "cpu_time_ns",
		.sort_name = "cpu-time",
		.title = "CPU time",
		.heading = "CPU TIME",
		.help = "Time for which threads ran on any CPU",
		.unit = MEMWATCH_UNIT_NS,
		.sort = MEMWATCH_SORT_CPU_TIME,
	},
	{
		COUNTER(CYCLES, CPU_CYCLES),
		.key = "cycles",
		.sort_name = "cycles",
		.title = "cycles",
		.heading = "CYCLES",
		.help = "Core cycles",
		.sort = MEMWATCH_SORT_CYCLES,
	},
	{
		COUNTER(INSTRUCTIONS, INSTRUCTIONS),
		.key = "instructions",
		.sort_name = "instructions",
		.title = "instructions",
		.heading = "INSTR",
		.help = "Instructions retired",
		.sort = MEMWATCH_SORT_INSTRUCTIONS,
	},
	{
		COMMON,
		.source = MEMWATCH_METRIC_RATIO,
		.index = MEMWATCH_COUNTER_INSTRUCTIONS,
		.divisor = MEMWATCH_COUNTER_CYCLES,
		.key = "ipc",
		.sort_name = "ipc",
		.title = "IPC",
		.heading = "IPC",
		.help = "Instructions per cycle",
		.unit = MEMWATCH_UNIT_RATIO,
		.sort = MEMWATCH_SORT_IPC,
	},
	{
		COUNTER(LLC_REFERENCES, CACHE_REFERENCES),
		.key = "llc_references",
		.title = "LLC references",
		.heading = "LLC REFS",
		.help = "References to the last-level cache",
		.flags = MEMWATCH_METRIC_DETAIL,
		.sort = MEMWATCH_SORT_LLC_REFERENCES,
	},
	{
		COUNTER(LLC_MISSES, CACHE_MISSES),
		.key = "llc_misses",
		.sort_name = "llc-misses",
		.title = "LLC misses",
		.heading = "LLC MISS",
		.help = "Misses of the last-level cache",
		.sort = MEMWATCH_SORT_LLC_MISSES,
	},
	{
		RDT(OCCUPANCY),
		.key = "llc_occupancy_bytes",
		.sort_name = "llc",
		.title = "LLC occupancy",
		.heading = "LLC",
		.help = "Bytes of the last-level cache in use, the mean over time",
		.unit = MEMWATCH_UNIT_BYTES,
		.flags = MEMWATCH_METRIC_LEVEL,
		.sort = MEMWATCH_SORT_OCCUPANCY,
	},
	{
		ACCOUNT(OCCUPANCY_MAX),
		.key = "llc_occupancy_max_bytes",
		.title = "largest LLC occupancy",
		.heading = "LLC MAX",
		.help = "Bytes of the last-level cache in use, the most at any time",
		.unit = MEMWATCH_UNIT_BYTES,
		.flags = MEMWATCH_METRIC_LEVEL | MEMWATCH_METRIC_DETAIL,
	},
	{
		ACCOUNT(RESIDUE),
		.key = "llc_residue_bytes",
		.title = "residual LLC occupancy",
		.heading = "LLC OLD",
		.help = "Bytes of the last-level cache that earlier owners of the RMID still "
			"occupied "
			"when it was allocated",
		.unit = MEMWATCH_UNIT_BYTES,
		.flags = MEMWATCH_METRIC_LEVEL | MEMWATCH_METRIC_DETAIL,
	},
	{
		RDT(MBM_TOTAL),
		.key = "mbm_total_bytes",
		.sort_name = "mbm-total",
		.title = "memory bandwidth",
		.heading = "MEMORY",
		.help = "Bytes moved to and from memory",
		.unit = MEMWATCH_UNIT_BYTES,
		.sort = MEMWATCH_SORT_MBM_TOTAL,
	},
	{
		RDT(MBM_LOCAL),
		.key = "mbm_local_bytes",
		.sort_name = "mbm-local",
		.title = "local memory bandwidth",
		.heading = "LOCAL",
		.help = "Bytes moved to and from memory of the local NUMA node",
		.unit = MEMWATCH_UNIT_BYTES,
		.sort = MEMWATCH_SORT_MBM_LOCAL,
	},
	{
		ACCOUNT(MEASURED),
		.key = "measured_ppm",
		.title = "measured share of the run time",
		.heading = "SHARE",
		.help = "Share of the CPU time for which the process had an RMID",
		.unit = MEMWATCH_UNIT_PPM,
		.flags = MEMWATCH_METRIC_LEVEL | MEMWATCH_METRIC_DETAIL,
	},
};

#define NR_METRICS (sizeof(metrics) / sizeof(*metrics))

const struct memwatch_metric_info *memwatch_metric_at(unsigned int position)
{
	return position < NR_METRICS ? &metrics[position] : NULL;
}

const struct memwatch_metric_info *memwatch_metric_find(unsigned int source, unsigned int index)
{
	if (source != MEMWATCH_METRIC_COUNTER && source != MEMWATCH_METRIC_RDT)
		return NULL;
	for (size_t i = 0; i < NR_METRICS; i++)
		if (metrics[i].source == source && metrics[i].index == index)
			return &metrics[i];
	return NULL;
}

static const char *metric_key(unsigned int source, unsigned int index)
{
	const struct memwatch_metric_info *metric = memwatch_metric_find(source, index);

	return metric ? metric->key : NULL;
}

const char *memwatch_counter_name(unsigned int counter)
{
	return metric_key(MEMWATCH_METRIC_COUNTER, counter);
}

const char *memwatch_rdt_event_name(unsigned int event)
{
	return metric_key(MEMWATCH_METRIC_RDT, event);
}
