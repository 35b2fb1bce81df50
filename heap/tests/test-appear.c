// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A profile, a copy of one and a trace have their names when they are complete: whoever sees such
 * a name can read the file. The program is stopped before and after each system call, and all
 * files are read at each stop.
 */
#include <sys/ptrace.h>

#include "heap/tests/kit.h"
#include "heap/tests/trace-read.h"

#define OPTIONS                                                                                    \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |    \
	 PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC)

struct seen {
	uint64_t stops;
	unsigned int most;   /* files at a time */
	uint64_t unreadable; /* files, over all stops */
	bool has_failed;
};

static bool file_is_readable(const char *path)
{
	struct profile profile;
	struct trace trace;

	if (kit_ends_in(path, ".mwtrace")) {
		if (!trace_open(&trace, path))
			return false;
		trace_close(&trace);
		return true;
	}
	if (!profile_open(&profile, path))
		return false;
	profile_close(&profile);
	return true;
}

static void files_read(struct seen *seen)
{
	DIR *directory = opendir(kit.directory);
	unsigned int count = 0;
	struct dirent *entry;
	char path[PATH_MAX + 300];

	while (directory && (entry = readdir(directory))) {
		if (!kit_ends_in(entry->d_name, ".mwheap") &&
		    !kit_ends_in(entry->d_name, ".mwtrace"))
			continue;
		count++;
		snprintf(path, sizeof(path), "%s/%s", kit.directory, entry->d_name);
		seen->unreadable += !file_is_readable(path);
	}
	if (directory)
		closedir(directory);
	seen->most = count > seen->most ? count : seen->most;
	seen->stops++;
}

/* The signal that is passed on to a process that has stopped. */
static int signal_of(int status)
{
	int signal = WSTOPSIG(status);

	if (signal == (SIGTRAP | 0x80) || status >> 16 || signal == SIGSTOP)
		return 0;
	return signal;
}

/* Runs the program and its children to their ends. */
static void program_step(struct seen *seen, pid_t first)
{
	int status;
	pid_t pid;

	if (waitpid(first, &status, 0) != first || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, first, 0, OPTIONS)) {
		seen->has_failed = true;
		kill(first, SIGKILL);
	}
	ptrace(PTRACE_SYSCALL, first, 0, 0);
	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		if (!WIFSTOPPED(status)) {
			seen->has_failed |= pid == first && status != 0;
			continue;
		}
		files_read(seen);
		ptrace(PTRACE_SYSCALL, pid, 0, signal_of(status));
	}
}

static void check_appearance(const char *what, const char *settings, const char *const *argv,
			     unsigned int files)
{
	struct seen seen = { 0 };
	struct kit_run run;

	kit_empty();
	if (kit_fork(&run)) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0))
			_exit(126);
		raise(SIGSTOP);
		kit_exec(NULL, settings, argv);
	}
	program_step(&seen, run.pid);
	close(run.output);
	printf("# %s: %lu stops, at most %u files\n", what, seen.stops, seen.most);
	tap_ok(!seen.has_failed && seen.most >= files, "%s: the program leaves %u files or more",
	       what, files);
	tap_eq(seen.unreadable, 0, "%s: at each system call, every file can be read", what);
	tap_eq(kit_count(""), seen.most, "%s: no other files are left", what);
}

int main(int argc, char **argv)
{
	(void)argc;
	kit_init(argv[0]);
	tap_start();
	check_appearance("a start", "MEMWATCH_HEAP_RATE=10000 MEMWATCH_HEAP_ISOLATE=10",
			 KIT_ARGV(kit.work, "fill", "1000000"), 1);
	check_appearance("copies", "MEMWATCH_HEAP_RATE=10000 MEMWATCH_HEAP_SNAPSHOT=bytes=1M,exit",
			 KIT_ARGV(kit.work, "fill", "4000000"), 3);
	check_appearance("forked children", "MEMWATCH_HEAP_RATE=10000",
			 KIT_ARGV(kit.work, "fork", "fork"), 2);
	check_appearance("a trace", "MEMWATCH_HEAP_RATE=10000 MEMWATCH_HEAP_TRACE=1",
			 KIT_ARGV(kit.work, "fill", "1000000"), 2);
	return tap_done();
}
