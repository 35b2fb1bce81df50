// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Programs that run with more privileges than their caller are not profiled, and say nothing.
 *
 * The dynamic linker preloads a library into such a program only if the library is in a folder
 * of the system and has the setuid bit itself. A copy of the profiler is mounted over a library
 * there, in a name space that only this test sees, so that the profiler itself has to refuse.
 */
#include <sched.h>
#include <sys/mount.h>

#include "heap/tests/kit.h"

#define NOBODY 65534

/* The C library's own example of a preloaded library. */
#define PLACE "libmemusage.so"

static const char *const folders[] = { "/lib/x86_64-linux-gnu/", "/usr/lib/x86_64-linux-gnu/",
				       "/lib/aarch64-linux-gnu/", "/usr/lib/aarch64-linux-gnu/" };

static char programs[PATH_MAX]; /* a file system of its own, with the copies */

static bool file_copy(const char *from, const char *name, mode_t mode, char *ret)
{
	char command[3 * PATH_MAX];

	snprintf(ret, PATH_MAX, "%.3000s/%s", programs, name);
	snprintf(command, sizeof(command), "cp '%s' '%s'", from, ret);
	return !system(command) && !chmod(ret, mode);
}

/* Mounts the profiler where the dynamic linker trusts it. */
static bool library_install(const char *copy)
{
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s" PLACE, folders[i]);
		if (!access(path, R_OK))
			return !mount(copy, path, NULL, MS_BIND, NULL);
	}
	return false;
}

static bool stage_set(void)
{
	char copy[PATH_MAX];

	snprintf(programs, sizeof(programs), "%.4000s/programs", kit.directory);
	return !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("none", kit.directory, "tmpfs", 0, "mode=1777") && !mkdir(programs, 0755) &&
	       file_copy(kit.library, "library", 04755, copy) && library_install(copy);
}

/* Runs a program as another user; its output, with that to standard error, is in @run. */
static void run_as_nobody(struct kit_run *run, const char *preload, const char *program)
{
	if (kit_fork(run)) {
		dup2(STDOUT_FILENO, STDERR_FILENO);
		setenv("MEMWATCH_HEAP_DIR", kit.directory, 1);
		setenv("MEMWATCH_HEAP_LOG", "1", 1);
		setenv("LD_PRELOAD", preload, 1);
		if (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
			_exit(126);
		execl(program, program, "secure", NULL);
		_exit(127);
	}
	kit_finish(run);
}

static void check_program(const char *program, const char *preload, const char *output,
			  unsigned int profiles, const char *what)
{
	struct kit_run run;

	run_as_nobody(&run, preload, program);
	tap_ok(kit_exited(&run), "%s runs to its end", what);
	tap_str_eq(run.text, output, "%s: nothing but its own output appears", what);
	tap_eq(kit_profiles(), profiles, "%s: number of profiles", what);
	kit_free(&run);
}

int main(int argc, char **argv)
{
	char plain[PATH_MAX], privileged[PATH_MAX];

	(void)argc;
	kit_init(argv[0]);
	tap_start();
	if (geteuid() || !stage_set()) {
		tap_skip("programs with more privileges than their caller",
			 "needs root, to make setuid programs");
		return tap_done();
	}
	if (!tap_ok(file_copy(kit.work, "plain", 0755, plain) &&
			    file_copy(kit.work, "privileged", 04755, privileged),
		    "there is a setuid program"))
		return tap_done();
	check_program(privileged, PLACE, "1 0\n", 0, "a setuid program with a trusted profiler");
	check_program(plain, PLACE, "0 65534\n", 1, "the same program without privileges");
	kit_empty();
	check_program(privileged, kit.library, "1 0\n", 0,
		      "a setuid program with a profiler in any folder");
	umount2(kit.directory, MNT_DETACH);
	return tap_done();
}
