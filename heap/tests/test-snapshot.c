// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Copies of the profile that the library makes itself.
 */
#include <sched.h>
#include <sys/mount.h>

#include "heap/tests/kit.h"
#include "heap/tests/steps.h"

#define STEPS_MAX 3000

/* Opens copy @number of the profile of @pid. */
static bool copy_open(struct profile *profile, pid_t pid, unsigned int number)
{
	char mark[64];

	snprintf(mark, sizeof(mark), ".%d-%04u.mwheap", (int)pid, number);
	return kit_open_named(profile, mark);
}

/* All copies of a process: each one can be read, and its samples have their stacks. */
struct copies {
	unsigned int count, complete, of_reason;
	double last_live; /* in the last one */
	bool grows;	  /* each one has at least as much as the one before */
};

static void copies_read(struct copies *copies, pid_t pid, enum mw_heap_snapshot_reason reason)
{
	struct profile profile;

	*copies = (struct copies){ .grows = true };
	while (copy_open(&profile, pid, copies->count + 1)) {
		double live = profile_live(&profile).bytes;

		copies->count++;
		copies->complete += profile_is_complete(&profile) &&
				    profile.header->snapshot_number == copies->count;
		copies->of_reason += profile.header->snapshot_reason == reason &&
				     profile.header->snapshot_ns >= profile.header->began_ns;
		copies->grows &= live >= copies->last_live;
		copies->last_live = live;
		profile_close(&profile);
	}
}

static void copies_check(const struct copies *copies, const char *what)
{
	tap_eq(copies->complete, copies->count, "%s: every copy is a complete profile", what);
	tap_eq(copies->of_reason, copies->count, "%s: every copy says why it was made", what);
}

static void check_bytes(void)
{
	struct copies copies;
	struct kit_run run;

	kit_empty();
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1000 MEMWATCH_HEAP_SNAPSHOT=bytes=2M",
		KIT_ARGV(kit.work, "fill", "21000000"));
	copies_read(&copies, run.pid, MW_HEAP_SNAPSHOT_BYTES);
	tap_ok(kit_exited(&run) && copies.count >= 9 && copies.count <= 10,
	       "20 MiB allocated give a copy at each 2 MiB (%u)", copies.count);
	copies_check(&copies, "by bytes allocated");
	tap_ok(copies.grows && copies.last_live > 17e6 && copies.last_live < 23e6,
	       "the copies show how the heap grew (%.0f bytes in the last one)", copies.last_live);
	kit_free(&run);
}

/* Samples come and go while the copies are made. */
static void check_threads(void)
{
	struct copies copies;
	struct kit_run run;

	kit_empty();
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1 MEMWATCH_HEAP_SNAPSHOT=bytes=50M,exit",
		KIT_ARGV(kit.work, "threads", "4", "4"));
	copies_read(&copies, run.pid, MW_HEAP_SNAPSHOT_BYTES);
	tap_ok(kit_exited(&run) && copies.count >= 8,
	       "a program with four threads is copied while it runs (%u)", copies.count);
	tap_eq(copies.complete, copies.count, "each of these copies is complete");
	tap_eq(copies.of_reason, copies.count - 1, "one of them was made at the end");
	kit_free(&run);
}

static void check_exit(void)
{
	struct profile copy;
	struct kit_run run;

	kit_empty();
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1 MEMWATCH_HEAP_SNAPSHOT=exit",
		KIT_ARGV(kit.work, "threads", "1", "1"));
	if (!tap_ok(kit_exited(&run) && copy_open(&copy, run.pid, 1),
		    "there is a copy of the profile at the end of the program"))
		return;
	tap_eq(copy.header->snapshot_reason, MW_HEAP_SNAPSHOT_EXIT, "it says so");
	tap_eq(copy.header->state, MW_HEAP_STATE_ENDED, "it says that the program has ended");
	profile_close(&copy);
	tap_eq(kit_profiles(), 2, "there is no other copy");
	kit_free(&run);
}

/* Goes on step by step until there are @count copies. */
static bool steps_until(struct steps *steps, uint64_t count)
{
	for (int n = 0; n < STEPS_MAX && steps->control->snapshots < count; n++) {
		steps_go(steps);
		usleep(10000);
	}
	return steps->control->snapshots >= count;
}

static void check_peak(void)
{
	struct steps steps = { 0 };
	struct copies copies;

	if (!tap_ok(steps_start(&steps, "MEMWATCH_HEAP_RATE=10000 MEMWATCH_HEAP_SNAPSHOT=peak"),
		    "a program that copies its highest sizes starts"))
		return;
	tap_ok(steps_until(&steps, 3), "a heap that grows is copied at new highest sizes");
	copies_read(&copies, steps.run.pid, MW_HEAP_SNAPSHOT_PEAK);
	copies_check(&copies, "at new highest sizes");
	tap_ok(copies.grows && copies.last_live >= 1e6 * 9 / 8 * 9 / 8,
	       "each of these sizes is higher by an eighth at least");
	steps_end(&steps);
}

static void check_interval(void)
{
	struct steps steps = { 0 };
	struct copies copies;

	if (!tap_ok(steps_start(&steps, "MEMWATCH_HEAP_SNAPSHOT=interval=1"),
		    "a program that copies its profile every second starts"))
		return;
	tap_ok(steps_until(&steps, 2), "it does so again and again");
	copies_read(&copies, steps.run.pid, MW_HEAP_SNAPSHOT_INTERVAL);
	copies_check(&copies, "every second");
	steps_end(&steps);
}

static void check_request(void)
{
	struct steps steps = { 0 };
	struct copies copies;

	if (!tap_ok(steps_start(&steps, "MEMWATCH_HEAP_RATE=10000"),
		    "a program that is asked for copies starts"))
		return;
	steps_go(&steps);
	tap_eq(steps.control->snapshots, 0, "nobody has asked yet");
	__atomic_fetch_add(&steps.control->snapshot_wanted, 1, __ATOMIC_RELEASE);
	steps_go(&steps);
	tap_eq(steps.control->snapshots, 1, "one request gives one copy");
	tap_eq(steps.control->snapshot_seen, 1, "the request was seen");
	steps_ask(&steps, MW_HEAP_CONTROL_STOP, 0);
	steps_go(&steps);
	__atomic_fetch_add(&steps.control->snapshot_wanted, 1, __ATOMIC_RELEASE);
	steps_go(&steps);
	tap_eq(steps.control->snapshots, 2, "a profile that was stopped is copied, too");
	copies_read(&copies, steps.run.pid, MW_HEAP_SNAPSHOT_REQUEST);
	copies_check(&copies, "on request");
	steps_end(&steps);
}

static void check_max(void)
{
	struct profile profile;
	struct kit_run run;

	kit_empty();
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1000 MEMWATCH_HEAP_SNAPSHOT=bytes=1M,max=2",
		KIT_ARGV(kit.work, "fill", "10000000"));
	tap_ok(kit_exited(&run) && kit_profiles() == 3, "there are not more copies than allowed");
	if (tap_ok(kit_open(&profile, run.pid), "a program with enough copies has a profile")) {
		tap_ok(profile.header->limits & MW_HEAP_LIMIT_SNAPSHOTS, "the profile says so");
		profile_close(&profile);
	}
	kit_free(&run);
}

/* Room for the profile, and not for its copies. */
static void check_full_disk(void)
{
	const char *what = "a disk that is too small for copies";
	struct profile profile;
	struct kit_run run;

	kit_empty();
	if (geteuid() || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", kit.directory, "tmpfs", 0, "size=2m")) {
		tap_skip(what, "needs root, to mount a small file system");
		return;
	}
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1000 MEMWATCH_HEAP_SNAPSHOT=bytes=1M",
		KIT_ARGV(kit.work, "fill", "3000000"));
	tap_ok(kit_exited(&run) && atoi(run.text) == 3000000, "%s: the program goes on", what);
	tap_eq(kit_profiles(), 1, "%s: no broken copy is left", what);
	if (tap_ok(kit_open(&profile, run.pid), "%s: the profile is there", what)) {
		tap_ok(profile.header->limits & MW_HEAP_LIMIT_SNAPSHOTS, "%s: it says so", what);
		profile_close(&profile);
	}
	kit_free(&run);
	umount(kit.directory);
}

int main(int argc, char **argv)
{
	(void)argc;
	kit_init(argv[0]);
	tap_start();
	check_bytes();
	check_threads();
	check_exit();
	check_peak();
	check_interval();
	check_request();
	check_max();
	check_full_disk();
	return tap_done();
}
