/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How the relay reads the hardware counters of its CPU. Included by the programs.
 */
#ifndef _MW_RELAY_COUNTERS_H
#define _MW_RELAY_COUNTERS_H

#include "relay-cpu.h"

/* Set by the library before loading; the verifier removes the code it makes unreachable. */
const volatile __u32 counters = 0xf; /* bit N: enum memwatch_counter N is available */

/* Indexed by CPU; libbpf sets their size to the number of CPUs. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
} cycles SEC(".maps"), instructions SEC(".maps"), llc_references SEC(".maps"),
	llc_misses SEC(".maps");

/* Reads a counter with its times. */
static __always_inline __u8 read_times(struct mw_relay_cpu *cpu, void *map, __u32 i, __u64 run_ns)
{
	struct mw_relay_reading *delta = &cpu->piece.delta[i], now;
	struct bpf_perf_event_value value = {};
	__u8 status = MEMWATCH_STATUS_FIRST;
	long err;

	err = bpf_perf_event_read_value(map, BPF_F_CURRENT_CPU, &value, sizeof(value));
	if (err) {
		cpu->have[i] = 0;
		count_failure(MW_RELAY_FAIL_READ + i);
		return err == -ENOENT ? MEMWATCH_STATUS_UNAVAILABLE : MEMWATCH_STATUS_ERROR;
	}
	now.counter = value.counter;
	now.enabled = value.enabled;
	now.running = value.running;
	if (cpu->have[i]) {
		status = mw_relay_delta(&cpu->last[i], &now, delta);
		if (status == MEMWATCH_STATUS_ERROR) {
			count_failure(MW_RELAY_FAIL_COUNTER_BACK);
		} else if (!cpu->exact) {
			mw_relay_check_times(cpu, i, cpu->last_ns + run_ns - cpu->begin_ns, delta);
			delta->enabled = run_ns;
			delta->running = run_ns;
		}
	}
	cpu->have[i] = 1;
	cpu->last[i] = now;
	return status;
}

/*
 * Reads a counter. Without @times it is faster: reading the clock and computing the times of
 * the event take as long as reading the counter.
 */
static __always_inline void read_counter(struct mw_relay_cpu *cpu, void *map, __u32 i, __u32 times,
					 __u64 run_ns)
{
	struct mw_relay_reading *delta = &cpu->piece.delta[i];
	__u64 now;

	delta->counter = 0;
	delta->enabled = 0;
	delta->running = 0;
	if (!(counters & (1U << i))) {
		cpu->piece.status[i] = MEMWATCH_STATUS_UNAVAILABLE;
		return;
	}
	if (!times && cpu->have[i]) {
		now = bpf_perf_event_read(map, BPF_F_CURRENT_CPU);
		if (now < MW_RELAY_ERROR_FIRST) {
			cpu->piece.status[i] = mw_relay_count(&cpu->last[i], now, run_ns, delta);
			if (cpu->piece.status[i] == MEMWATCH_STATUS_ERROR)
				count_failure(MW_RELAY_FAIL_COUNTER_BACK);
			return;
		}
		/* the other helper says what is wrong */
	}
	cpu->piece.status[i] = read_times(cpu, map, i, run_ns);
}

/*
 * Reads the counters; their increments since the last reading go to cpu->piece.
 *
 * This, fill_sample(), send_samples(), send_held_batch() and resend_record() are global functions
 * with scalar arguments that leave their results in the map: the verifier checks a global function
 * once, and not again on each path and in each iteration of the loop that calls it.
 */
__noinline int read_counters(__u32 times, __u64 run_ns)
{
	struct mw_relay_cpu *cpu = this_cpu();

	if (!cpu)
		return 0;
	read_counter(cpu, &cycles, MEMWATCH_COUNTER_CYCLES, times, run_ns);
	read_counter(cpu, &instructions, MEMWATCH_COUNTER_INSTRUCTIONS, times, run_ns);
	read_counter(cpu, &llc_references, MEMWATCH_COUNTER_LLC_REFERENCES, times, run_ns);
	read_counter(cpu, &llc_misses, MEMWATCH_COUNTER_LLC_MISSES, times, run_ns);
	return 0;
}

#endif /* _MW_RELAY_COUNTERS_H */
