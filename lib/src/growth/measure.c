// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Measurements of the event program, see measure.h.
 */
#include "growth/measure.h"

#include <unistd.h>

#include "loader/libbpf.h"
#include "base/context.h"
#include "base/timemath.h"

/*
 * What a run costs when its time cannot be measured: more than was ever measured for the
 * program and the tracepoint together.
 */
#define RUN_COST_NS 100

void mw_measure_init(struct mw_measure *measure, uint64_t now_ns)
{
	*measure = (struct mw_measure){
		.to_ns = now_ns,
		.next_ns = now_ns + MW_MEASURE_AGAIN_NS,
		.stats_fd = -1,
	};
}

void mw_measure_uninit(struct mw_measure *measure)
{
	if (measure->active && measure->stats_fd >= 0)
		close(measure->stats_fd);
	measure->active = false;
}

static void begin_measurement(struct mw_measure *measure, struct mw_bpf_growth *bpf,
			      uint64_t now_ns)
{
	measure->active = true;
	measure->next_ns = now_ns + MW_MEASURE_NS;
	measure->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	measure->from_ns = now_ns;
	measure->run_ns = mw_bpf_growth_event_ns(bpf);
	measure->runs = mw_bpf_growth_event_runs(bpf);
}

/*
 * The run time of the event program in the measurement that ends. Without CAP_SYS_ADMIN it
 * is known only if the administrator has set kernel.bpf_stats_enabled.
 */
static uint64_t run_time(struct mw_measure *measure, struct memwatch_ctx *ctx,
			 struct mw_bpf_growth *bpf)
{
	uint64_t ran = mw_sub_sat(mw_bpf_growth_event_ns(bpf), measure->run_ns);
	uint64_t runs = mw_sub_sat(mw_bpf_growth_event_runs(bpf), measure->runs);

	measure->estimated = measure->stats_fd < 0 && !ran;
	if (!measure->estimated)
		return ran;
	if (!measure->told)
		mw_log(ctx, MEMWATCH_LOG_WARNING,
		       "the run time of the event program cannot be measured without "
		       "CAP_SYS_ADMIN; its budget is kept by an estimate of %d ns for each run",
		       RUN_COST_NS);
	measure->told = true;
	return runs * RUN_COST_NS;
}

bool mw_measure_run(struct mw_measure *measure, struct memwatch_ctx *ctx, struct mw_bpf_growth *bpf,
		    uint64_t now_ns, struct mw_measured *ret)
{
	uint64_t ran, time;

	if (now_ns < measure->next_ns)
		return false;
	if (!measure->active) {
		begin_measurement(measure, bpf, now_ns);
		return false;
	}
	ran = run_time(measure, ctx, bpf);
	mw_measure_uninit(measure);
	time = mw_max_u64(now_ns - measure->from_ns, 1);
	ret->ppm = (uint32_t)mw_min_u64(mw_mul_sat(ran, 1000000) / time, UINT32_MAX);
	ret->passed_ns = now_ns - measure->to_ns;
	ret->cpu_ns = mw_mul_sat(ran, ret->passed_ns) / time;
	measure->to_ns = now_ns;
	return true;
}

void mw_measure_schedule(struct mw_measure *measure, bool soon)
{
	measure->next_ns = measure->to_ns - MW_MEASURE_NS +
			   (soon ? MW_MEASURE_AGAIN_NS : MW_MEASURE_EVERY_NS);
}
