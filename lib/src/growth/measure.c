// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Measurements of the event program, see measure.h.
 */
#include "growth/measure.h"

#include "base/timemath.h"

void mw_measure_init(struct mw_measure *measure, uint64_t now_ns)
{
	*measure = (struct mw_measure){
		.last_ns = now_ns,
		.next_ns = now_ns + MW_MEASURE_AGAIN_NS,
	};
}

/*
 * The run time from @from to @to: all runs took as long as those that were timed meanwhile; if
 * none was, as those that were timed ever.
 */
static uint64_t run_time(const struct mw_event_runs *from, const struct mw_event_runs *to)
{
	uint64_t timed = to->timed - from->timed;
	uint64_t timed_ns = to->timed_ns - from->timed_ns;

	if (!timed) {
		timed = mw_max_u64(to->timed, 1);
		timed_ns = to->timed_ns;
	}
	return mw_mul_sat(to->all - from->all, timed_ns) / timed;
}

bool mw_measure_run(struct mw_measure *measure, struct mw_bpf_growth *bpf, uint64_t now_ns,
		    struct mw_measured *ret)
{
	struct mw_event_runs runs;

	if (now_ns < measure->next_ns)
		return false;
	mw_bpf_growth_event_runs(bpf, &runs);
	ret->passed_ns = mw_max_u64(now_ns - measure->last_ns, 1);
	ret->cpu_ns = run_time(&measure->last, &runs);
	ret->ppm = (uint32_t)mw_min_u64(mw_mul_sat(ret->cpu_ns, 1000000) / ret->passed_ns,
					UINT32_MAX);
	measure->last_ns = now_ns;
	measure->last = runs;
	return true;
}

void mw_measure_schedule(struct mw_measure *measure, bool soon)
{
	measure->next_ns = measure->last_ns + (soon ? MW_MEASURE_AGAIN_NS : MW_MEASURE_EVERY_NS);
}
