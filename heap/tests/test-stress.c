// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Everything at once, for a while: no crash, no deadlock, no free that is missed.
 *
 *	test-stress [SECONDS]
 */
#include <sched.h>
#include <sys/mount.h>
#include <time.h>

#include "heap/tests/kit.h"

#define SECONDS_DEFAULT 9
#define THREADS		"64"

/* After the time that the program was given, on a machine that is busy. */
#define HANG_SECONDS 300

struct stress_figures {
	unsigned long operations, children, loads, signals, failures;
};

/* A program that hangs is killed. */
static void run_with_limit(struct kit_run *run, const char *settings, const char *const *argv,
			   unsigned int seconds)
{
	time_t limit = time(NULL) + seconds + HANG_SECONDS;

	kit_start(run, NULL, settings, argv);
	for (;;) {
		siginfo_t ended = { .si_pid = 0 };

		waitid(P_PID, (id_t)run->pid, &ended, WEXITED | WNOHANG | WNOWAIT);
		if (ended.si_pid)
			break;
		if (time(NULL) > limit)
			kill(run->pid, SIGKILL);
		usleep(10000);
	}
	kit_finish(run);
}

#define SETTINGS                                                                                   \
	"MEMWATCH_HEAP_RATE=5000 MEMWATCH_HEAP_MMAP=1 MEMWATCH_HEAP_MAX=16M "                      \
	"MEMWATCH_HEAP_SNAPSHOT=bytes=64M,peak,interval=1,max=20 "
#define WATCHING "MEMWATCH_HEAP_ISOLATE=300 MEMWATCH_HEAP_EPOCH=20"

static bool run_stress(struct kit_run *run, const char *settings, unsigned int seconds,
		       const char *what)
{
	struct stress_figures figures = { .failures = 1 };
	char plugin[PATH_MAX], seconds_text[16];

	kit_empty();
	snprintf(plugin, sizeof(plugin), "%.4000s/plugin.so", kit.build);
	snprintf(seconds_text, sizeof(seconds_text), "%u", seconds);
	run_with_limit(run, settings, KIT_ARGV(kit.work, "stress", plugin, THREADS, seconds_text),
		       seconds);
	sscanf(run->text, "%lu %lu %lu %lu %lu", &figures.operations, &figures.children,
	       &figures.loads, &figures.signals, &figures.failures);
	tap_ok(kit_exited(run) && figures.operations && figures.children && figures.loads &&
		       figures.signals,
	       "%s: it goes on to its end (status %#x; %lu000 operations, %lu children, %lu "
	       "libraries, %lu signals)",
	       what, run->status, figures.operations / 1000, figures.children, figures.loads,
	       figures.signals);
	tap_eq(figures.failures, 0, "%s: no child and no call fails", what);
	return kit_exited(run);
}

static void check_profile(const char *settings, unsigned int seconds, bool watches,
			  const char *what)
{
	struct profile profile;
	struct kit_run run;

	if (run_stress(&run, settings, seconds, what) &&
	    tap_ok(kit_open(&profile, run.pid), "%s: there is a profile", what)) {
		const struct mw_heap_header *header = profile.header;

		tap_ok(profile_live(&profile).bytes < 2e6,
		       "%s: no free is missed (%.0f of %.0f bytes are left)", what,
		       profile_live(&profile).bytes, (double)header->counters.allocated_bytes);
		tap_eq(header->counters.unseen_frees, 0, "%s: no address is used twice", what);
		tap_eq(header->counters.lost_samples, 0, "%s: no sample is lost", what);
		tap_ok(profile_is_complete(&profile), "%s: every sample has its stack", what);
		tap_ok(header->figures_valid <= 2 + (seconds + HANG_SECONDS) / 10,
		       "%s: the allocator is asked at most every ten seconds (%u times)", what,
		       header->figures_valid);
		if (watches)
			tap_ok(header->watch_max && header->epochs > 2,
			       "%s: accesses were looked at (%lu epochs, %lu watches lost, %lu "
			       "refused)",
			       what, header->epochs, header->watch_lost, header->watch_refused);
		profile_close(&profile);
	}
	kit_free(&run);
}

/* The profile cannot be made, or cannot grow. */
static void check_directory(const char *options, unsigned int seconds, const char *what)
{
	struct kit_run run;

	if (geteuid() || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", kit.directory, "tmpfs", 0, options)) {
		tap_skip(what, "needs root, to mount a small file system");
		return;
	}
	run_stress(&run, SETTINGS WATCHING, seconds, what);
	kit_free(&run);
	umount(kit.directory);
}

/* An independent opinion about what the profiler does with memory. */
static void check_valgrind(void)
{
	const char *what = "under valgrind";
	char plugin[PATH_MAX];
	struct kit_run run;

	if (system("command -v valgrind >/dev/null")) {
		tap_skip(what, "valgrind is not installed");
		return;
	}
	kit_empty();
	snprintf(plugin, sizeof(plugin), "%.4000s/plugin.so", kit.build);
	run_with_limit(&run, "MEMWATCH_HEAP_RATE=100 MEMWATCH_HEAP_MMAP=1",
		       KIT_ARGV("valgrind", "-q", "--error-exitcode=9", kit.work, "stress", plugin,
				"8", "2"),
		       2);
	tap_ok(kit_exited(&run), "%s: no error is found (status %#x)", what, run.status);
	kit_free(&run);
}

int main(int argc, char **argv)
{
	unsigned int seconds = argc > 1 ? (unsigned int)atoi(argv[1]) : SECONDS_DEFAULT;

	kit_init(argv[0]);
	tap_start();
	check_profile(SETTINGS, seconds / 3 + 1, false, "everything at once");
	check_profile(SETTINGS WATCHING, seconds / 3 + 1, true, "with watched objects");
	check_valgrind();
	check_directory("size=4m", seconds / 3, "with a full disk");
	check_directory("ro", seconds / 3, "with a read-only directory");
	return tap_done();
}
