// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What a program may rely on when it allocates is true under the profiler, too.
 */
#include "heap/tests/kit.h"

static void check_bounds(void)
{
	struct profile profile;
	struct kit_run run;

	kit_empty();
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1", KIT_ARGV(kit.work, "bounds"));
	tap_ok(kit_exited(&run), "a thread whose first call is pthread_getattr_np() goes on");
	if (tap_ok(kit_open(&profile, run.pid), "a program with such a thread leaves a profile")) {
		tap_eq(profile.header->unwinder.remote_reads, 0,
		       "the profiler reads the stack of such a thread without system calls");
		profile_close(&profile);
	}
	kit_free(&run);
}

static void check_cancel(const char *settings, const char *what)
{
	char slow[PATH_MAX];
	struct profile profile;
	struct kit_run run;

	kit_empty();
	snprintf(slow, sizeof(slow), "%.4000s/slow-disk.so", kit.build);
	kit_run(&run, slow, settings, KIT_ARGV(kit.work, "cancel"));
	tap_ok(kit_exited(&run), "threads are not cancelled in malloc(): %s", what);
	if (tap_ok(kit_open(&profile, run.pid), "cancelled threads leave a profile: %s", what)) {
		tap_ok(profile.header->figures_valid && profile_live(&profile).samples > 4000,
		       "cancelled threads are profiled to their end: %s (%lu samples)", what,
		       (unsigned long)profile_live(&profile).samples);
		profile_close(&profile);
	}
	kit_free(&run);
}

static void check_errno(const char *settings, const char *what)
{
	struct kit_run run;

	kit_empty();
	kit_run(&run, NULL, settings, KIT_ARGV(kit.work, "errno", kit.directory));
	tap_ok(kit_exited(&run), "free() does not change errno when the profile cannot grow: %s",
	       what);
	kit_free(&run);
}

int main(int argc, char **argv)
{
	(void)argc;
	kit_init(argv[0]);
	tap_start();
	check_bounds();
	check_cancel("MEMWATCH_HEAP_RATE=1000", "samples");
	check_cancel("MEMWATCH_HEAP_RATE=1000 MEMWATCH_HEAP_TRACE=1", "a trace");
	check_cancel("MEMWATCH_HEAP_RATE=1000 MEMWATCH_HEAP_SNAPSHOT=bytes=1M,max=5", "snapshots");
	check_cancel("MEMWATCH_HEAP_RATE=1000 MEMWATCH_HEAP_ISOLATE=100 MEMWATCH_HEAP_EPOCH=50",
		     "accesses");
	check_errno("MEMWATCH_HEAP_RATE=1", "samples");
	check_errno("MEMWATCH_HEAP_TRACE=1 MEMWATCH_HEAP_TRACE_DEPTH=16", "a trace");
	return tap_done();
}
