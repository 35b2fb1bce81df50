// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the trace has of each thread: who may write, and who has nothing to write with.
 */
#include <errno.h>
#include <sys/syscall.h>

#include "heap/tests/sandbox.h"
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
	if (kit_unsupported(&run)) {
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

/* Threads that live have streams of their own, also if it is not permitted to ask for them. */
static void check_sandbox(void)
{
	const char *what = "16 threads in a sandbox without tgkill()";
	struct trace_balance balance;
	char program[PATH_MAX];
	struct trace trace;
	struct kit_run run;

	kit_empty();
	snprintf(program, sizeof(program), "%.4000s/crowd", kit.build);
	if (kit_fork(&run)) {
		if (sandbox_enter(SYS_tgkill, SECCOMP_RET_ERRNO | EPERM))
			kit_exec(NULL, "MEMWATCH_HEAP_TRACE=1", KIT_ARGV(program, "16", "1000"));
		_exit(WORK_UNSUPPORTED);
	}
	kit_finish(&run);
	if (kit_unsupported(&run)) {
		tap_skip(what, "this kernel has no filters of system calls");
	} else if (tap_ok(kit_exited(&run) && open_trace_of(&trace, run.pid),
			  "%s: the program ends well and leaves a trace", what)) {
		trace_balance(&trace, &balance);
		check_balance(&trace, &balance, what);
		tap_eq(trace_streams(&trace), 17, "%s: each thread has a stream of its own", what);
		free(balance.live);
		trace_close(&trace);
	}
	kit_free(&run);
}

/*
 * In a forked child another thread allocates first, and the trace of the parent ends. The thread
 * that forked was traced before, and has nothing to write with any more.
 */
static void check_fork_other_first(void)
{
	const char *what = "a child in which another thread allocates first";
	struct trace_balance balance;
	size_t own = 0;
	struct trace trace;
	struct kit_run run;
	pid_t child;

	kit_empty();
	kit_run(&run, NULL, "MEMWATCH_HEAP_TRACE=1",
		KIT_ARGV(kit.work, "fork", "other", "1000000"));
	child = atoi(run.text);
	if (tap_ok(kit_exited(&run) && open_trace_of(&trace, child), "%s: it has a trace", what)) {
		trace_balance(&trace, &balance);
		check_balance(&trace, &balance, what);
		for (size_t i = 0; i < balance.live_count; i++)
			own += balance.live[i].tid == (uint32_t)child;
		tap_eq(own, 500, "%s: the objects of the thread that forked are there", what);
		tap_eq(balance.live_count - own, 500, "%s: those of the other one, too", what);
		tap_eq(trace_streams(&trace), 2, "%s: each has a stream of its own", what);
		free(balance.live);
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
	check_sandbox();
	check_fork_other_first();
	return tap_done();
}
