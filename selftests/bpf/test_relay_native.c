// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Tests the programs of the relay on the running kernel without the module. They are run with
 * BPF_PROG_TEST_RUN and write to real rings. Finally the test prints what the programs cost.
 */
#include <sched.h>

#include "native-rig.h"
#include "native-time.h"
#include "native-records.h"
#include "native-counters.h"

/* Prints the average run time of a program, as the kernel's statistics count it. */
static void print_cost(const char *what, struct bpf_program *prog, uint64_t (*args)[5],
		       size_t count, unsigned int runs)
{
	struct bpf_prog_info before = { 0 }, after = { 0 };
	uint32_t size = sizeof(before);
	union rig_record rec;

	bpf_obj_get_info_by_fd(bpf_program__fd(prog), &before, &size);
	for (unsigned int i = 0; i < runs; i++) {
		uint64_t copy[5];

		memcpy(copy, args[i & 1], sizeof(copy));
		copy[0] += i * 1000;
		run_program(prog, copy, count);
		if (i % 64 == 0)
			while (rig_next(&rig, cpu, &rec) == 1)
				;
	}
	size = sizeof(after);
	bpf_obj_get_info_by_fd(bpf_program__fd(prog), &after, &size);
	if (after.run_cnt > before.run_cnt)
		tap_note("cost %s: %llu ns", what,
			 (unsigned long long)((after.run_time_ns - before.run_time_ns) /
					      (after.run_cnt - before.run_cnt)));
}

/* Software events in place of the four counters. */
static void open_cost_counters(int *fds)
{
	fds[0] = open_counter(rig.skel->maps.cycles, PERF_COUNT_SW_CPU_CLOCK);
	fds[1] = open_counter(rig.skel->maps.instructions, PERF_COUNT_SW_CPU_CLOCK);
	fds[2] = open_counter(rig.skel->maps.llc_references, PERF_COUNT_SW_PAGE_FAULTS);
	fds[3] = open_counter(rig.skel->maps.llc_misses, PERF_COUNT_SW_PAGE_FAULTS);
}

static void print_mode_costs(enum mw_relay_mode mode, bool counters)
{
	uint64_t change[2][5] = { { 2000000, 0, OWNER(1, 1) }, { 2000000, OWNER(1, 1), 0 } };
	uint64_t same[2][5] = { { 2000000, 0, 0 }, { 2000000, 0, 0 } };
	uint64_t tick[2][5] = { { 2000000, 0, 1000000, 0, 0 }, { 2000000, 0, 1000000, 0, 0 } };
	int fds[4] = { -1, -1, -1, -1 };

	if (!open_rig(mode, counters ? 0xf : 0, 512, 64))
		return;
	if (counters)
		open_cost_counters(fds);
	run_tick(1000000, 0);
	tap_note("%s mode, %s counters:", mode == MW_RELAY_SWITCH ? "switch" : "slot",
		 counters ? "4 software" : "no");
	print_cost("switch, same owner", rig.skel->progs.on_switch, same, 4, 20000);
	print_cost("switch, other owner", rig.skel->progs.on_switch, change, 4, 20000);
	print_cost("tick, one owner", rig.skel->progs.on_tick, tick, 5, 20000);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	rig_close(&rig);
}

static void print_costs(void)
{
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);

	if (stats < 0) {
		tap_note("no cost: run time statistics are not permitted");
		return;
	}
	for (int counters = 0; counters < 2; counters++) {
		print_mode_costs(MW_RELAY_SLOT, counters);
		print_mode_costs(MW_RELAY_SWITCH, counters);
	}
	close(stats);
}

int main(void)
{
	cpu_set_t set;

	tap_start();
	if (geteuid())
		tap_skip_all("needs root");
	cpu = sched_getcpu();
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);

	if (!tap_ok(!rig_verifier_stats(), "the verifier accepts every program"))
		return tap_done();
	if (!tap_ok(open_arena(), "records can be placed in kernel memory"))
		return tap_done();
	test_time();
	test_records();
	test_counters();
	print_costs();
	return tap_done();
}
