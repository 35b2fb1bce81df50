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

int main(int argc, char **argv)
{
	(void)argc;
	kit_init(argv[0]);
	tap_start();
	check_bounds();
	return tap_done();
}
