/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Measures the run time of the event program, which times some of its runs. The kernel's statistics
 * (BPF_ENABLE_STATS) are not used: to enable them for a moment costs more than the program, for it
 * patches the code of the kernel while all CPUs wait, and it needs CAP_SYS_ADMIN.
 */
#ifndef MW_GROWTH_MEASURE_H
#define MW_GROWTH_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/growth.h"

/*
 * How often the run time is read. While the program is over its budget it is read every
 * MW_MEASURE_AGAIN_NS, so that it is detached soon.
 */
#define MW_MEASURE_EVERY_NS 10000000000ULL
#define MW_MEASURE_AGAIN_NS 1000000000ULL

/**
 * struct mw_measure - the measurements
 * @next_ns: when the next one is due
 * @last_ns: when the last one was
 * @last: the runs at that time
 */
struct mw_measure {
	uint64_t next_ns;
	uint64_t last_ns;
	struct mw_event_runs last;
};

/**
 * struct mw_measured - the result of a measurement
 * @ppm: share of one CPU
 * @passed_ns: time since the last result
 * @cpu_ns: CPU time in @passed_ns
 */
struct mw_measured {
	uint32_t ppm;
	uint64_t passed_ns;
	uint64_t cpu_ns;
};

void mw_measure_init(struct mw_measure *measure, uint64_t now_ns);

/*
 * Measures if it is time. Returns whether it was. The caller sets @next_ns afterwards with
 * mw_measure_schedule().
 */
bool mw_measure_run(struct mw_measure *measure, struct mw_bpf_growth *bpf, uint64_t now_ns,
		    struct mw_measured *ret);

/* @soon: the program is over its budget. */
void mw_measure_schedule(struct mw_measure *measure, bool soon);

#endif /* MW_GROWTH_MEASURE_H */
