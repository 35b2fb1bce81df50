/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Runs programs with the profiler preloaded, and finds their profiles.
 */
#ifndef _MW_HEAP_TESTS_KIT_H
#define _MW_HEAP_TESTS_KIT_H

#include <dirent.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "heap/tests/profile-read.h"
#include "heap/tests/work.h"
#include "selftests/tap.h"

#define KIT_OUTPUT_MAX (16u << 20)

/* Where Debian has the libraries of this machine. */
#ifdef __aarch64__
#define KIT_LIBRARIES "/usr/lib/aarch64-linux-gnu/"
#else
#define KIT_LIBRARIES "/usr/lib/x86_64-linux-gnu/"
#endif

struct kit {
	char build[PATH_MAX];	     /* where the test programs are */
	char library[PATH_MAX];	     /* libmemwatch-heap.so */
	char work[PATH_MAX];	     /* the workload program */
	char directory[PATH_MAX];    /* of the profiles */
	char opened[PATH_MAX + 300]; /* the profile that was opened last */
};

static struct kit kit;

struct kit_run {
	pid_t pid;
	int output; /* standard output of the program */
	int status; /* of wait() */
	char *text; /* what it printed */
};

static inline void kit_empty(void)
{
	DIR *directory = opendir(kit.directory);
	struct dirent *entry;

	while (directory && (entry = readdir(directory)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(directory), entry->d_name, 0);
	if (directory)
		closedir(directory);
}

static inline void kit_remove(void)
{
	kit_empty();
	rmdir(kit.directory);
}

static inline void kit_init(const char *argv0)
{
	char own[PATH_MAX];

	if (!realpath(argv0, own))
		exit(1);
	snprintf(kit.build, sizeof(kit.build), "%s", dirname(own));
	snprintf(kit.library, sizeof(kit.library), "%.4000s/../libmemwatch-heap.so", kit.build);
	snprintf(kit.work, sizeof(kit.work), "%.4000s/work", kit.build);
	snprintf(kit.directory, sizeof(kit.directory), "%s/memwatch-heap-XXXXXX",
		 getenv("TMPDIR") ?: P_tmpdir);
	if (!mkdtemp(kit.directory))
		exit(1);
	atexit(kit_remove);
}

/* HEAP_TEST_RUNNER is a command before each command, an emulator for example. */
static inline void kit_exec_command(const char *const *argv)
{
	char words[1024], *word, *rest = words;
	const char *command[64];
	size_t n = 0;

	snprintf(words, sizeof(words), "%s", getenv("HEAP_TEST_RUNNER") ?: "");
	while (n < 16 && (word = strsep(&rest, " ")))
		if (*word)
			command[n++] = word;
	while (n < 63 && *argv)
		command[n++] = *argv++;
	command[n] = NULL;
	execvp(command[0], (char *const *)command);
	_exit(127);
}

/* In the child: environment and command. @settings are "NAME=VALUE", separated by blanks. */
static inline void kit_exec(const char *behind, const char *settings, const char *const *argv)
{
	char preload[2 * PATH_MAX + 2], words[1024], *word, *rest = words;

	snprintf(preload, sizeof(preload), "%s %s", kit.library, behind ?: "");
	snprintf(words, sizeof(words), "%s", settings ?: "");
	setenv("MEMWATCH_HEAP_DIR", kit.directory, 1);
	while ((word = strsep(&rest, " ")))
		if (*word)
			putenv(strdup(word));
	setenv("LD_PRELOAD", preload, 1);
	kit_exec_command(argv);
}

/* Returns true in the child, whose standard output is that of the run. */
static inline bool kit_fork(struct kit_run *run)
{
	int ends[2];

	memset(run, 0, sizeof(*run));
	if (pipe(ends))
		exit(1);
	run->pid = fork();
	if (!run->pid) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
	}
	close(ends[1]);
	run->output = ends[0];
	return !run->pid;
}

/* @behind: libraries that are preloaded behind the profiler, or NULL. */
static inline void kit_start(struct kit_run *run, const char *behind, const char *settings,
			     const char *const *argv)
{
	if (kit_fork(run))
		kit_exec(behind, settings, argv);
}

/* Reads the rest of the output, and waits. */
static inline void kit_finish(struct kit_run *run)
{
	size_t used = 0;
	ssize_t got;

	run->text = malloc(KIT_OUTPUT_MAX);
	while ((got = read(run->output, run->text + used, KIT_OUTPUT_MAX - 1 - used)) > 0)
		used += (size_t)got;
	run->text[used] = 0;
	close(run->output);
	waitpid(run->pid, &run->status, 0);
}

static inline void kit_run(struct kit_run *run, const char *behind, const char *settings,
			   const char *const *argv)
{
	kit_start(run, behind, settings, argv);
	kit_finish(run);
}

static inline void kit_free(struct kit_run *run)
{
	free(run->text);
	run->text = NULL;
}

static inline bool kit_ends_in(const char *name, const char *suffix)
{
	size_t length = strlen(name), ending = strlen(suffix);

	return length >= ending && !strcmp(name + length - ending, suffix);
}

/* How many files there are whose names end in @suffix. */
static inline unsigned int kit_count(const char *suffix)
{
	DIR *directory = opendir(kit.directory);
	unsigned int count = 0;
	struct dirent *entry;

	while (directory && (entry = readdir(directory)))
		count += entry->d_name[0] != '.' && kit_ends_in(entry->d_name, suffix);
	if (directory)
		closedir(directory);
	return count;
}

static inline unsigned int kit_profiles(void)
{
	return kit_count(".mwheap");
}

/* Opens a profile whose name contains @mark. */
static inline bool kit_open_named(struct profile *profile, const char *mark)
{
	DIR *directory = opendir(kit.directory);
	struct dirent *entry;
	bool found = false;

	while (directory && !found && (entry = readdir(directory))) {
		if (!strstr(entry->d_name, mark) || !kit_ends_in(entry->d_name, ".mwheap"))
			continue;
		snprintf(kit.opened, sizeof(kit.opened), "%s/%s", kit.directory, entry->d_name);
		found = profile_open(profile, kit.opened);
	}
	if (directory)
		closedir(directory);
	return found;
}

/* Opens the profile of process @pid, or any profile if that is 0. */
static inline bool kit_open(struct profile *profile, pid_t pid)
{
	char mark[32] = ".mwheap";

	if (pid)
		snprintf(mark, sizeof(mark), ".%d.mwheap", (int)pid);
	return kit_open_named(profile, mark);
}

/* The profiler is told by its memory that it is in a child, which not every emulator knows. */
static inline bool kit_forks_clear_memory(void)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status = 1;
	pid_t child;

	if (page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK))
		return false;
	*page = 1;
	child = fork();
	if (!child)
		_exit(*page);
	waitpid(child, &status, 0);
	munmap(page, 4096);
	return !status;
}

static inline bool kit_exited(const struct kit_run *run)
{
	return WIFEXITED(run->status) && WEXITSTATUS(run->status) == 0;
}

/* What the program was to try cannot be tried on this machine. */
static inline bool kit_unsupported(const struct kit_run *run)
{
	return WIFEXITED(run->status) && WEXITSTATUS(run->status) == WORK_UNSUPPORTED;
}

#define KIT_ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })

#endif
