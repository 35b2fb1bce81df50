// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the trace has of each thread: who may write, and who has nothing to write with.
 */
#include "heap/tests/trace-kit.h"
#include "heap/tests/work.h"

/* Of each thread of the crowd; enough that no other allocations of the program make up for them. */
#define CROWD_PAIRS 100

/* More threads than are traced at a time; the profiler's own limit is MW_TRACE_WRITERS_MAX. */
static void check_crowd(void)
{
	const uint64_t expected = UINT64_C(4400) * CROWD_PAIRS * 2;
	const char *what = "4400 threads at a time";
	uint64_t lost, counted;
	char program[PATH_MAX], pairs[16];
	struct trace trace;
	struct kit_run run;

	kit_empty();
	snprintf(program, sizeof(program), "%.4000s/crowd", kit.build);
	snprintf(pairs, sizeof(pairs), "%d", CROWD_PAIRS);
	kit_run(&run, NULL, "MEMWATCH_HEAP_TRACE=1 MEMWATCH_HEAP_TRACE_MAX=1M",
		KIT_ARGV(program, "4400", pairs));
	if (WIFEXITED(run.status) && WEXITSTATUS(run.status) == WORK_UNSUPPORTED) {
		tap_skip(what, "this machine does not permit so many");
	} else if (tap_ok(kit_exited(&run) && open_trace_of(&trace, run.pid),
			  "%s: the program ends well and leaves a trace", what)) {
		lost = trace.header->lost_no_room + trace.header->lost_nested;
		counted = trace.count + lost;
		tap_ok(counted >= expected,
		       "%s: each event is in the trace or counted as lost (%lu of %lu)", what,
		       (unsigned long)counted, (unsigned long)expected);
		trace_close(&trace);
	}
	kit_free(&run);
}

int main(int argc, char **argv)
{
	(void)argc;
	kit_init(argv[0]);
	tap_start();
	check_crowd();
	return tap_done();
}
