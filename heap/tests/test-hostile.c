// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Circumstances in which a profile cannot be complete, or cannot be made at all. The program
 * must not notice.
 */
#include <inttypes.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "heap/tests/kit.h"

static void check_signals(void)
{
	struct profile profile;
	struct kit_run run;

	kit_empty();
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1", KIT_ARGV(kit.work, "signals", "10"));
	tap_ok(kit_exited(&run) && atoi(run.text) > 0,
	       "a program that is interrupted by signals goes on (%d signals)", atoi(run.text));
	if (tap_ok(kit_open(&profile, run.pid), "a program with signals leaves a profile")) {
		tap_ok(profile_live(&profile).bytes < 100000,
		       "no free is missed under signals (%.0f bytes left)",
		       profile_live(&profile).bytes);
		profile_close(&profile);
	}
	kit_free(&run);
}

static void check_dlopen(void)
{
	char plugin[PATH_MAX];
	struct profile profile;
	struct kit_run run;
	unsigned int modules = 0;

	kit_empty();
	snprintf(plugin, sizeof(plugin), "%.4000s/plugin.so", kit.build);
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1", KIT_ARGV(kit.work, "dlopen", plugin, "200"));
	if (!tap_ok(kit_exited(&run) && kit_open(&profile, run.pid),
		    "a library is loaded and unloaded 200 times"))
		return;
	for (uint32_t n = 1; n <= profile.header->modules; n++) {
		const struct mw_heap_module *module = profile_module(&profile, n);
		const char *path = profile_at(&profile, MW_HEAP_CHUNK_STRINGS, module->path, 1);

		modules += module->path_bytes == strlen(plugin) &&
			   !memcmp(path, plugin, module->path_bytes);
	}
	tap_eq(modules, 1, "it is one module of the profile");
	tap_ok(profile_live(&profile).bytes >= 200000, "its objects live on in the profile");
	profile_close(&profile);
	kit_free(&run);
}

static void check_closed_files(void)
{
	struct profile profile;
	struct kit_run run;

	kit_empty();
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1", KIT_ARGV(kit.work, "fds", "3000000"));
	if (!tap_ok(kit_exited(&run) && kit_open(&profile, run.pid),
		    "a program that closes all its files leaves a profile"))
		return;
	tap_ok(profile_live(&profile).objects >= 30000,
	       "the profile grows after the program has closed its descriptor (%.0f objects)",
	       profile_live(&profile).objects);
	profile_close(&profile);
	kit_free(&run);
}

#define NAMES_IN_USE 200

static void name_print(char *path, size_t size, pid_t pid, int n)
{
	char number[16] = "";

	if (n)
		snprintf(number, sizeof(number), ".%d", n);
	snprintf(path, size, "%s/work.%d%s.mwheap", kit.directory, (int)pid, number);
}

/* In containers, a program has the same process id with each start. */
static void check_names(void)
{
	char path[PATH_MAX + 64];
	struct kit_run run;

	kit_empty();
	if (kit_fork(&run)) {
		for (int n = 0; n < NAMES_IN_USE; n++) {
			name_print(path, sizeof(path), getpid(), n);
			close(open(path, O_WRONLY | O_CREAT | O_EXCL, 0600));
		}
		kit_exec(NULL, "", KIT_ARGV(kit.work, "fill", "1000"));
	}
	kit_finish(&run);
	name_print(path, sizeof(path), run.pid, NAMES_IN_USE);
	tap_ok(kit_exited(&run) && !access(path, R_OK),
	       "a program has a profile after %d others with its name and process id",
	       NAMES_IN_USE);
	kit_free(&run);
}

static void check_privileges(const char *work, const char *what)
{
	struct profile profile;
	struct kit_run run;
	pid_t child = 0;

	if (geteuid()) {
		tap_skip(what, "needs root, to have privileges");
		return;
	}
	kit_empty();
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1000 MEMWATCH_HEAP_SEED=5",
		KIT_ARGV(kit.work, work, "3000000"));
	sscanf(run.text, "%*u %*u %d", &child);
	if (!tap_ok(kit_exited(&run) && kit_open(&profile, child ?: run.pid), "%s leaves a profile",
		    what))
		return;
	tap_ok(fabs(profile_live(&profile).bytes / 3000000 - 1) < 0.08,
	       "%s is profiled afterwards (%.0f bytes)", what, profile_live(&profile).bytes);
	profile_close(&profile);
	kit_free(&run);
}

/* More samples than there is room for: the rate goes up, and the estimate stays right. */
static void check_thinning(void)
{
	struct profile_live live;
	struct profile profile;
	struct kit_run run;
	double truth;

	kit_empty();
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=100 MEMWATCH_HEAP_MAX=8M MEMWATCH_HEAP_SEED=3",
		KIT_ARGV(kit.work, "fill", "50000000"));
	truth = (double)atoll(run.text);
	if (!tap_ok(kit_exited(&run) && kit_open(&profile, run.pid),
		    "a program with more samples than fit leaves a profile"))
		return;
	live = profile_live(&profile);
	tap_ok(profile.header->counters.thinnings > 3 && profile.header->rate_bytes > 100,
	       "it was thinned out %lu times, to a rate of %lu bytes",
	       (unsigned long)profile.header->counters.thinnings,
	       (unsigned long)profile.header->rate_bytes);
	tap_ok(profile.header->limits & MW_HEAP_LIMIT_SAMPLES_FULL, "it says so");
	tap_ok(fabs(live.bytes - truth) <= 4 * sqrt(live.bytes_variance),
	       "the estimate is still right: %.0f +- %.0f, truth %.0f", live.bytes,
	       1.96 * sqrt(live.bytes_variance), truth);
	tap_ok(fabs((double)profile.header->live_bytes - live.bytes) <= live.bytes / 1000,
	       "the header's sum agrees with the samples");
	tap_eq(profile.header->counters.lost_samples, 0, "no sample is lost by thinning");
	tap_ok(profile.bytes <= 4u << 20, "the file has at most 4 MiB (%zu)", profile.bytes);
	profile_close(&profile);
	kit_free(&run);
}

/* A tmpfs of @bytes on the folder of the profiles, which only this process sees. */
static bool directory_limit(const char *options)
{
	return !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("none", kit.directory, "tmpfs", 0, options);
}

static void check_full_disk(const char *options, const char *what)
{
	struct profile profile;
	struct kit_run run;

	kit_empty();
	if (geteuid() || !directory_limit(options)) {
		tap_skip(what, "needs root, to mount a small file system");
		return;
	}
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1", KIT_ARGV(kit.work, "fill", "3000000"));
	tap_ok(kit_exited(&run) && atoi(run.text) == 3000000, "%s: the program goes on", what);
	if (kit_open(&profile, run.pid)) {
		tap_ok(profile.header->limits & MW_HEAP_LIMIT_NO_SPACE, "%s: the profile says so",
		       what);
		profile_close(&profile);
	} else {
		tap_eq(kit_profiles(), 0, "%s: no broken profile is left", what);
	}
	kit_free(&run);
	umount(kit.directory);
}

static void check_no_directory(void)
{
	struct kit_run run;
	char settings[PATH_MAX + 64];

	kit_empty();
	snprintf(settings, sizeof(settings), "MEMWATCH_HEAP_DIR=%.4000s/missing", kit.directory);
	kit_run(&run, NULL, settings, KIT_ARGV(kit.work, "fill", "3000000"));
	tap_ok(kit_exited(&run) && atoi(run.text) == 3000000,
	       "without a directory for the profile the program runs all the same");
	kit_free(&run);
}

/* The limit of a file's size would send SIGXFSZ, which ends a program. */
static void check_file_size(void)
{
	struct rlimit limit = { 100000, RLIM_INFINITY }, old;
	struct kit_run run;

	kit_empty();
	getrlimit(RLIMIT_FSIZE, &old);
	setrlimit(RLIMIT_FSIZE, &limit);
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1", KIT_ARGV(kit.work, "fill", "3000000"));
	setrlimit(RLIMIT_FSIZE, &old);
	tap_ok(kit_exited(&run) && atoi(run.text) == 3000000,
	       "a limit of the size of files does not end the program");
	kit_free(&run);
}

/* Little address space: the profile may fail, the program may not. */
static void check_address_space(void)
{
	struct rlimit limit = { 40u << 20, RLIM_INFINITY }, old;
	struct kit_run run;

	kit_empty();
	getrlimit(RLIMIT_AS, &old);
	setrlimit(RLIMIT_AS, &limit);
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1", KIT_ARGV(kit.work, "fill", "3000000"));
	setrlimit(RLIMIT_AS, &old);
	tap_ok(kit_exited(&run) && atoi(run.text) == 3000000,
	       "a limit of the address space does not end the program");
	kit_free(&run);
}

/* A profile can be read at any moment while it is written. */
static void check_reading(void)
{
	struct mw_heap_sample sample;
	unsigned int copied = 0, wrong = 0;
	struct profile profile;
	struct kit_run run;

	kit_empty();
	kit_start(&run, NULL, "MEMWATCH_HEAP_RATE=1", KIT_ARGV(kit.work, "threads", "4", "1000"));
	while (!kit_open(&profile, run.pid) || !profile.chunks[MW_HEAP_CHUNK_SAMPLES])
		usleep(1000);
	/* Until there is enough, or the program has ended. */
	while (copied < 200000 && waitpid(run.pid, &run.status, WNOHANG) == 0) {
		for (uint64_t slot = 0; slot < profile_slots(&profile); slot++) {
			if (!profile_sample(&profile, slot, &sample))
				continue;
			copied++;
			wrong += sample.rate != 1 || !sample.address || !sample.stack ||
				 sample.source > MW_HEAP_SOURCE_NEW;
		}
	}
	kill(run.pid, SIGKILL);
	kit_finish(&run);
	tap_ok(copied > 1000 && !wrong,
	       "%u samples were read while they were written, %u of them damaged", copied, wrong);
	profile_close(&profile);
	kit_free(&run);
}

/* Returns whether the disk took about as long as it should. */
static bool run_slow_disk(struct kit_run *run, const char *ms)
{
	char slow[PATH_MAX], late[PATH_MAX], settings[PATH_MAX + 64], done = 0;

	kit_empty();
	snprintf(slow, sizeof(slow), "%.4000s/slow-disk.so", kit.build);
	snprintf(late, sizeof(late), "%.4000s/late", kit.directory);
	snprintf(settings, sizeof(settings),
		 "MEMWATCH_HEAP_RATE=65536 SLOW_DISK_MS=%s SLOW_DISK_LATE=%s", ms, late);
	kit_start(run, slow, settings, KIT_ARGV(kit.work, "arenas", "4", "20000"));
	tap_eq(read(run->output, &done, 1), 1, "four threads allocate with a disk that takes %s ms",
	       ms);
	kill(run->pid, SIGKILL);
	kit_finish(run);
	return access(late, F_OK);
}

/*
 * While one thread adds memory to the profile, the others wait rather than do without it; for
 * 0.2 s at most, which a busy machine makes of a tenth.
 */
static void check_slow_disk(const char *ms)
{
	struct profile profile;
	struct kit_run run;

	for (int tries = 10; !run_slow_disk(&run, ms) && --tries;)
		kit_free(&run);
	if (!tap_ok(kit_open(&profile, run.pid), "a program with a slow disk leaves a profile"))
		return;
	tap_ok(profile_live(&profile).samples > 100 && profile_is_complete(&profile),
	       "every one of %" PRIu64 " samples has its stack and its modules",
	       profile_live(&profile).samples);
	tap_eq(profile.header->counters.lost_samples, 0, "no sample is lost");
	tap_eq(profile.header->limits, 0, "no limit is reached");
	profile_close(&profile);
	kit_free(&run);
}

/* NFS 3, FAT, and what mke2fs makes by default. */
static void check_no_allocation(void)
{
	struct profile profile;
	char slow[PATH_MAX];
	struct kit_run run;

	kit_empty();
	snprintf(slow, sizeof(slow), "%.4000s/slow-disk.so", kit.build);
	kit_run(&run, slow, "MEMWATCH_HEAP_RATE=1000 SLOW_DISK_REFUSES=1",
		KIT_ARGV(kit.work, "exact", "20000"));
	if (tap_ok(kit_exited(&run) && kit_open(&profile, run.pid),
		   "a disk that cannot allocate blocks: the program leaves a profile")) {
		tap_ok(profile_live(&profile).samples > 0 && profile_is_complete(&profile),
		       "a disk that cannot allocate blocks: the profile is complete");
		profile_close(&profile);
	}
	kit_free(&run);
}

/* A sandbox that answers the system calls with which a profile grows. */
static void check_sandbox(void)
{
	const char *what = "a sandbox that answers system calls by SIGSYS";
	struct profile profile;
	struct kit_run run;

	kit_empty();
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1", KIT_ARGV(kit.work, "sandbox", "10000000"));
	if (kit_unsupported(&run)) {
		tap_skip(what, "this kernel has no filters of system calls");
	} else if (tap_ok(kit_exited(&run) && kit_open(&profile, run.pid),
			  "%s: the program leaves a profile", what)) {
		tap_ok(profile_live(&profile).bytes >= 10000000 && profile_is_complete(&profile),
		       "%s: the profile is complete", what);
		profile_close(&profile);
	}
	kit_free(&run);
}

int main(int argc, char **argv)
{
	(void)argc;
	kit_init(argv[0]);
	tap_start();
	check_signals();
	check_dlopen();
	check_closed_files();
	check_names();
	check_privileges("daemon", "a daemon that gives up its privileges");
	check_privileges("worker", "a forked worker that gives up its privileges at once");
	check_thinning();
	check_no_directory();
	check_file_size();
	check_address_space();
	check_reading();
	check_slow_disk("10");
	check_slow_disk("100");
	check_no_allocation();
	check_sandbox();
	check_full_disk("size=4k", "a disk without room for a header");
	check_full_disk("size=700k", "a disk that fills up at the first sample");
	check_full_disk("size=2m", "a disk that fills up later");
	check_full_disk("ro", "a read-only directory");
	return tap_done();
}
