/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Measures the run time of the event program, for a short time every now and then.
 */
#ifndef MW_GROWTH_MEASURE_H
#define MW_GROWTH_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/growth.h"

/*
 * The run time of the event program is measured for MW_MEASURE_NS every MW_MEASURE_EVERY_NS,
 * because counting costs as much as the program itself. While the program is over its
 * budget it is measured every MW_MEASURE_AGAIN_NS, so that it is detached soon.
 */
#define MW_MEASURE_EVERY_NS 10000000000ULL
#define MW_MEASURE_AGAIN_NS 1000000000ULL
#define MW_MEASURE_NS	    200000000ULL

/**
 * struct mw_measure - the measurements
 * @next_ns: when the next measurement begins or ends
 * @from_ns: when the current measurement began
 * @to_ns: when the last measurement ended
 * @run_ns: run time of the event program when the current measurement began
 * @runs: number of its runs at that time
 * @stats_fd: keeps run time statistics enabled during a measurement; else -1
 * @active: a measurement is in progress
 * @estimated: the last result is an estimate from the number of runs
 * @told: the log says that the run time cannot be measured
 */
struct mw_measure {
	uint64_t next_ns;
	uint64_t from_ns;
	uint64_t to_ns;
	uint64_t run_ns;
	uint64_t runs;
	int stats_fd;
	bool active;
	bool estimated;
	bool told;
};

/**
 * struct mw_measured - the result of a measurement
 * @ppm: share of one CPU
 * @passed_ns: time since the last result
 * @cpu_ns: CPU time in @passed_ns, extrapolated
 */
struct mw_measured {
	uint32_t ppm;
	uint64_t passed_ns;
	uint64_t cpu_ns;
};

void mw_measure_init(struct mw_measure *measure, uint64_t now_ns);
void mw_measure_uninit(struct mw_measure *measure);

/*
 * Begins or ends a measurement if it is time. Returns whether one has ended. The caller sets
 * @next_ns afterwards with mw_measure_schedule().
 */
bool mw_measure_run(struct mw_measure *measure, struct memwatch_ctx *ctx, struct mw_bpf_growth *bpf,
		    uint64_t now_ns, struct mw_measured *ret);

/* @soon: the program is over its budget. */
void mw_measure_schedule(struct mw_measure *measure, bool soon);

#endif /* MW_GROWTH_MEASURE_H */
