// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Runs a command with the profiler preloaded.
 */
#include "cmds/heap/preload.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmds/heap/command.h"
#include "cmds/heap/outcome.h"
#include "common/clock.h"
#include "common/interrupt.h"
#include "common/message.h"

#define LIBRARY "libmemwatch-heap.so"
/* The profiler takes its default for more. */
#define RATE_MOST (UINT64_C(1) << 40)

/* The dynamic loader takes LD_PRELOAD apart there, and nothing can prevent it. */
static int check_library_path(const char *path)
{
	if (!strpbrk(path, " :"))
		return 0;
	mw_error(MW_EXIT_FAILED, path, "cannot be preloaded: its path has a blank or a colon");
	mw_hint("copy the library to another folder, and name it with --library FILE");
	return MW_EXIT_FAILED;
}

/* The profiler is installed into PREFIX/lib, and built into a folder beside this program's. */
static int find_library(struct heap_preload *preload, const char *library)
{
	static const char *const places[] = { "../lib/" LIBRARY, "../lib/memwatch/" LIBRARY,
					      "../heap/" LIBRARY };
	char self[PATH_MAX - 64], path[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (library && realpath(library, preload->library))
		return check_library_path(preload->library);
	if (library)
		return mw_error_errno(-errno, "--library");
	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - self), self, places[i]);
		if (realpath(path, preload->library) && !access(preload->library, R_OK))
			return check_library_path(preload->library);
	}
	mw_error(MW_EXIT_UNSUPPORTED, preload->what, LIBRARY " was not found");
	mw_hint("name it with --library FILE");
	return MW_EXIT_UNSUPPORTED;
}

/* The profiler says nothing if it cannot write there, so it must be known before. */
static int create_directory(struct heap_preload *preload, const char *output)
{
	struct stat st;

	if (mkdir(output, 0700) && errno != EEXIST)
		return mw_error_errno(-errno, output);
	if (!realpath(output, preload->directory) || stat(preload->directory, &st))
		return mw_error_errno(-errno, output);
	if (!S_ISDIR(st.st_mode))
		return mw_error_errno(-ENOTDIR, output);
	if (access(preload->directory, W_OK | X_OK))
		return mw_error_errno(-errno, output);
	return 0;
}

int heap_preload_init(struct heap_preload *preload, const char *command, const char *library,
		      const char *output)
{
	int rc = heap_command_check(command);

	if (!rc)
		rc = find_library(preload, library);
	return rc ? rc : create_directory(preload, output);
}

int heap_option_check(const char *option, uint64_t value, uint64_t least, uint64_t most,
		      const char *range)
{
	if (value == HEAP_NOT_GIVEN || (value >= least && value <= most))
		return 0;
	return mw_error(MW_EXIT_USAGE, option, "must be %s", range);
}

int heap_rate_check(uint64_t rate)
{
	return heap_option_check("--rate", rate, 1, RATE_MOST, "from 1 to 1T");
}

int heap_preload_number(const char *name, uint64_t value)
{
	char text[32];

	if (!value || value == HEAP_NOT_GIVEN)
		return 0;
	snprintf(text, sizeof(text), "%" PRIu64, value);
	return setenv(name, text, 1) ? -errno : 0;
}

/* The child inherits the environment of this process, which loads nothing any more. */
static int set_environment(const struct heap_preload *preload)
{
	const char *others = getenv("LD_PRELOAD");
	char *list = NULL;
	int err;

	if (asprintf(&list, "%s%s%s", preload->library, others && *others ? ":" : "",
		     others ? others : "") < 0)
		return -ENOMEM;
	err = setenv("LD_PRELOAD", list, 1) ? -errno : 0;
	free(list);
	if (!err && setenv("MEMWATCH_HEAP_DIR", preload->directory, 1))
		err = -errno;
	return err;
}

int heap_preload_fork(struct heap_preload *preload, char **argv)
{
	int err;

	preload->began_ns = mw_clock_ns(CLOCK_REALTIME);
	err = set_environment(preload) ?: mw_child_fork(&preload->child, argv);

	if (err)
		return mw_error_errno(err, argv[0]);
	mw_child_pass_signals(&preload->child);
	return 0;
}

int heap_preload_start(struct heap_preload *preload, char **argv)
{
	int err = mw_child_start(&preload->child);

	if (!err)
		return 0;
	mw_child_uninit(&preload->child);
	return mw_child_failed(err, argv[0]);
}

int heap_preload_end(struct heap_preload *preload)
{
	int status = preload->child.status, number;
	char text[128];

	heap_outcome_check(preload);
	if (!WIFSIGNALED(status)) {
		mw_child_uninit(&preload->child);
		return WEXITSTATUS(status);
	}
	number = WTERMSIG(status);
	mw_warn(preload->cli, "the command %s",
		mw_child_status_text(&preload->child, text, sizeof(text)));
	mw_child_uninit(&preload->child);
	if (number == SIGINT || number == SIGQUIT) {
		fflush(NULL);
		/* The core dump of the command must stay. */
		prctl(PR_SET_DUMPABLE, 0);
		mw_interrupt_end_by(number);
	}
	return 128 + number;
}
