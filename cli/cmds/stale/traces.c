// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Finds the traces in a directory.
 */
#include "cmds/stale/traces.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memwatch/stale-process.h>

#include "common/library.h"
#include "common/message.h"

#define SUFFIX	       ".mwtrace"
#define PROFILE_SUFFIX ".mwheap"

static bool has_suffix(const char *name, const char *suffix)
{
	const char *dot = strrchr(name, '.');

	return dot && !strcmp(dot, suffix);
}

/*
 * Whether process @pid has recorded the trace. Its name does not say so: "sh.42.1.mwtrace" is of
 * process 42 if that has executed another shell, and of process 1 of a program "sh.42".
 */
static bool is_trace_of(struct memwatch_ctx *ctx, const char *path, uint64_t pid)
{
	MEMWATCH_OPTS(memwatch_stale_process, process);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), err;

	if (fd < 0)
		return false;
	err = memwatch_stale_get_process(ctx, fd, &process);
	close(fd);
	return !err && process.pid == pid;
}

/* "COMM.PID.mwheap" beside it. */
static void find_profile(struct stale_trace *trace)
{
	size_t len = strlen(trace->path);
	const char *slash = strrchr(trace->path, '/');
	char *end = trace->path + len - strlen(SUFFIX), *dash = end;

	*trace->profile = '\0';
	if (len < strlen(SUFFIX) || strcmp(end, SUFFIX))
		return;
	while (dash > trace->path && dash > slash && *dash != '-' && (dash == end || *dash != '.'))
		dash--;
	if (*dash == '-' && dash > slash)
		end = dash;
	snprintf(trace->profile, sizeof(trace->profile), "%.*s" PROFILE_SUFFIX,
		 (int)(end - trace->path), trace->path);
}

/* A trace and its profile have nearly the same name. */
static int check_name(const char *name)
{
	if (!has_suffix(name, PROFILE_SUFFIX))
		return 0;
	mw_error(MW_EXIT_FAILED, name, "is a heap profile, and no trace");
	mw_hint("if there is a trace beside it, its name ends in " SUFFIX
		"; \"memwatchctl heap report\" reads profiles");
	return MW_EXIT_FAILED;
}

/* The largest trace, and of those of one size the first by name. */
static int choose_trace(struct memwatch_ctx *ctx, struct stale_trace *trace, const char *directory,
			uint64_t pid, DIR *dir)
{
	uint64_t found = 0, largest = 0;
	char path[PATH_MAX];
	struct dirent *entry;
	struct stat st;

	*trace->path = '\0';
	while ((entry = readdir(dir))) {
		if (!has_suffix(entry->d_name, SUFFIX) ||
		    snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name) >=
			    (int)sizeof(path) ||
		    stat(path, &st) || !S_ISREG(st.st_mode) ||
		    (pid && !is_trace_of(ctx, path, pid)))
			continue;
		found++;
		if (*trace->path &&
		    ((uint64_t)st.st_size < largest ||
		     ((uint64_t)st.st_size == largest && strcmp(path, trace->path) > 0)))
			continue;
		largest = (uint64_t)st.st_size;
		strcpy(trace->path, path);
	}
	trace->others = found - !!found;
	if (found)
		return 0;
	if (pid)
		return mw_error(MW_EXIT_FAILED, directory, "has no trace of process %" PRIu64, pid);
	mw_error(MW_EXIT_FAILED, directory, "has no trace (COMM.PID" SUFFIX ")");
	mw_hint("\"memwatchctl stale run -o DIR -- COMMAND\" records one");
	return MW_EXIT_FAILED;
}

int stale_trace_find(struct stale_trace *trace, const struct mw_cli *cli, const char *name,
		     uint64_t pid)
{
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	int rc = mw_library_new(cli, &ctx);
	DIR *dir;

	if (rc)
		return rc;
	trace->others = 0;
	dir = opendir(name);
	if (!dir && errno != ENOTDIR)
		return mw_error_errno(-errno, name);
	if (!dir) {
		if (snprintf(trace->path, sizeof(trace->path), "%s", name) >=
		    (int)sizeof(trace->path))
			return mw_error_errno(-ENAMETOOLONG, name);
		find_profile(trace);
		return check_name(name);
	}
	rc = choose_trace(ctx, trace, name, pid, dir);
	closedir(dir);
	if (!rc)
		find_profile(trace);
	return rc;
}

bool stale_access_path(const struct stale_trace *trace, unsigned int number, char *path)
{
	const char *slash = strrchr(trace->path, '/');
	int folder = slash ? (int)(slash + 1 - trace->path) : 0;
	char suffix[16] = "";

	if (number)
		snprintf(suffix, sizeof(suffix), "-%u", number + 1);
	return snprintf(path, PATH_MAX, "%.*saccesses%s.mwaccess", folder, trace->path, suffix) <
	       PATH_MAX;
}
