// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Children: each has a profile of its own or none, and none changes the one of its parent.
 */
#include "heap/tests/kit.h"

#define BYTES "1000000"

/* Objects of 1000 bytes; the C library has a few more of its own. */
static void check_bytes(const struct profile *profile, double expected, const char *what)
{
	struct profile_live live = profile_live(profile);

	tap_ok(live.bytes >= expected && live.bytes < expected * 1.2 + 50000,
	       "%s (%.0f bytes, expected %.0f)", what, live.bytes, expected);
}

/* Of a test, with a preloaded library that makes the kernel seem to be old, or without it. */
static const char *title_of(const char *behind, const char *how)
{
	static char title[64];

	snprintf(title, sizeof(title), "%s%s", how, behind ? " on an old kernel" : "");
	return title;
}

static void check_own_profile(const char *behind, const char *how)
{
	struct profile parent, child;
	struct kit_run run;
	pid_t pid;

	kit_empty();
	kit_run(&run, behind, "MEMWATCH_HEAP_RATE=1", KIT_ARGV(kit.work, "fork", how, BYTES));
	how = title_of(behind, how);
	pid = atoi(run.text);
	if (!tap_ok(kit_exited(&run) && kit_open(&parent, run.pid) && kit_open(&child, pid),
		    "%s: parent and child have a profile", how))
		return;
	check_bytes(&parent, 2000000, "the parent's profile has what the parent allocated");
	check_bytes(&child, 1000000, "the child's profile has what the child allocated");
	tap_eq(child.header->began, MW_HEAP_BEGAN_FORK, "%s: the child's profile began at the fork",
	       how);
	tap_eq(child.header->parent_pid, run.pid, "%s: the child's profile names its parent", how);
	tap_eq(parent.header->pid, run.pid, "%s: the parent's profile is still its own", how);
	tap_eq(child.header->unwinder.remote_reads, 0,
	       "%s: the child reads its stack without system calls", how);
	profile_close(&parent);
	profile_close(&child);
	kit_free(&run);
}

/* The memory of such a child is its parent's, and so are its allocations. */
static void check_shared_memory(const char *behind, const char *how)
{
	struct profile parent;
	struct kit_run run;

	kit_empty();
	kit_run(&run, behind, "MEMWATCH_HEAP_RATE=1", KIT_ARGV(kit.work, "fork", how, BYTES));
	how = title_of(behind, how);
	if (!tap_ok(kit_exited(&run) && kit_open(&parent, run.pid), "%s: the parent has a profile",
		    how))
		return;
	tap_eq(kit_profiles(), 1, "%s: the child has no profile of its own", how);
	check_bytes(&parent, 3000000, "the parent's profile has the objects of both");
	tap_ok(parent.header->state == MW_HEAP_STATE_ACTIVE ||
		       parent.header->state == MW_HEAP_STATE_ENDED,
	       "%s: the child has not stopped the parent's profile", how);
	profile_close(&parent);
	kit_free(&run);
}

static void check_kinds(const char *behind)
{
	check_own_profile(behind, "fork");
	check_own_profile(behind, "thread");
	check_own_profile(behind, "raw");
	check_shared_memory(behind, "vfork");
	check_shared_memory(behind, "vm");
}

/* Nothing is different where the kernel clears no memory in children, as before Linux 4.14. */
static void check_old_kernel(void)
{
	char library[PATH_MAX];

	snprintf(library, sizeof(library), "%.4000s/old-kernel.so", kit.build);
	check_kinds(library);
}

static void check_stop(void)
{
	struct profile parent;
	struct kit_run run;

	kit_empty();
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1 MEMWATCH_HEAP_FORK=stop",
		KIT_ARGV(kit.work, "fork", "fork", BYTES));
	if (!tap_ok(kit_exited(&run) && kit_open(&parent, run.pid),
		    "a program whose children stop has a profile"))
		return;
	tap_eq(kit_profiles(), 1, "a child that stops has no profile");
	check_bytes(&parent, 2000000, "the parent of a child that stops goes on");
	profile_close(&parent);
	kit_free(&run);
}

static void check_storm(void)
{
	struct profile parent;
	struct kit_run run;

	kit_empty();
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1000", KIT_ARGV(kit.work, "storm", "50"));
	tap_ok(kit_exited(&run) && !strcmp(run.text, "done\n"),
	       "200 children of four threads come and go");
	/* A child that exits without having allocated has none. */
	tap_eq(kit_profiles(), 101, "the parent and the children that allocated have profiles");
	if (tap_ok(kit_open(&parent, run.pid), "the parent of the storm has a profile")) {
		double bytes = profile_live(&parent).bytes;

		/* Four times the standard deviation of 10 000 samples. */
		tap_ok(fabs(bytes / (200 * 50000) - 1) < 0.04,
		       "all allocations of the parent are in its profile (%.0f bytes)", bytes);
		profile_close(&parent);
	}
	kit_free(&run);
}

/* Children that are forked by a signal handler, and return into what it interrupted. */
static void check_signal(const char *what, const char *settings, unsigned long forks_least,
			 const char *const *argv)
{
	unsigned long forks = 0, failures = 1;
	struct kit_run run;

	kit_empty();
	kit_run(&run, NULL, settings, argv);
	if (kit_unsupported(&run)) {
		tap_skip(what, "this machine has no single steps that a program can switch on");
		kit_free(&run);
		return;
	}
	sscanf(run.text, "%lu %lu", &forks, &failures);
	tap_ok(kit_exited(&run) && forks >= forks_least, "%s: a signal handler forks (%lu times)",
	       what, forks);
	tap_eq(failures, 0, "%s: its children return into the profiler and end well", what);
	kit_free(&run);
}

/* More instructions are needed for an object that is watched. */
static void check_signals(const char *count, const char *stride, const char *watched_stride)
{
	const char *rate = "MEMWATCH_HEAP_RATE=1";
	const char *watched = "MEMWATCH_HEAP_RATE=1 MEMWATCH_HEAP_ISOLATE=100";

	check_signal("while samples are taken", rate, strtoul(count, NULL, 10),
		     KIT_ARGV(kit.work, "sigfork", count));
	check_signal("after each so-many-th instruction", rate, 20,
		     KIT_ARGV(kit.work, "stepfork", stride));
	check_signal("while objects are watched", watched, strtoul(count, NULL, 10),
		     KIT_ARGV(kit.work, "sigfork", count));
	check_signal("after each so-many-th instruction for a watched object", watched, 20,
		     KIT_ARGV(kit.work, "stepfork", watched_stride));
}

/* A new program in the same process: both have a profile. */
static void check_exec(void)
{
	struct kit_run run;

	kit_empty();
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1000",
		KIT_ARGV("sh", "-c", "exec sh -c 'exec \"$0\" fill 1000000' \"$0\"", kit.work));
	tap_ok(kit_exited(&run) && kit_profiles() == 3,
	       "each program of a process that calls exec() leaves a profile (%u of 3)",
	       kit_profiles());
	kit_free(&run);
}

int main(int argc, char **argv)
{
	kit_init(argv[0]);
	tap_start();
	/* In the matrix: many more of them. */
	if (argc > 1 && !strcmp(argv[1], "signal")) {
		check_signals("1000", "7", "37");
		return tap_done();
	}
	check_kinds(NULL);
	check_old_kernel();
	check_stop();
	check_storm();
	check_exec();
	check_signals("50", "211", "211");
	return tap_done();
}
