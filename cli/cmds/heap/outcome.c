// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Whether a command that has ended was profiled. The profiler cannot say so itself: it may not
 * have been loaded, and it prints nothing unless it was asked to.
 */
#include "cmds/heap/outcome.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmds/heap/processes.h"
#include "common/message.h"

#define PROFILE_SUFFIX ".mwheap"
#define TRACE_SUFFIX   ".mwtrace"

/* The clocks of profiles are coarse. No process ID is used again so soon. */
#define CLOCK_ERROR_NS 1000000000

/**
 * struct outcome - the files of the process that has ended
 * @earlier: it has a profile, which is of a program that has executed another one
 * @profile: the last program has a profile
 * @trace: and a trace
 */
struct outcome {
	const struct heap_preload *preload;
	struct memwatch_ctx *ctx;
	bool earlier, profile, trace;
};

/* "COMM.PID.mwheap" and "COMM.PID.mwtrace" are beside each other. */
static bool has_trace(const char *profile)
{
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%.*s" TRACE_SUFFIX,
		 (int)(strlen(profile) - strlen(PROFILE_SUFFIX)), profile);
	return !access(path, F_OK);
}

/*
 * A process that executes another program keeps its number and gets another name. One that has
 * called exit() was the last, whatever name it has given itself.
 */
static bool is_last_program(const struct outcome *o, const struct memwatch_heap_info *info)
{
	const char *comm = o->preload->child.comm;

	return info->state == MEMWATCH_HEAP_STATE_ENDED || !*comm || !strcmp(info->comm, comm);
}

static void add_profile(struct outcome *o, const char *path)
{
	MEMWATCH_OPTS(memwatch_heap_info, info);
	struct memwatch_heap *heap;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return;
	if (!heap_header_read(o->ctx, fd, path, &heap, &info)) {
		/* Processes of earlier runs may have had the same number. */
		if (info.pid == (uint32_t)o->preload->child.pid &&
		    info.end_ns + CLOCK_ERROR_NS > o->preload->began_ns) {
			if (is_last_program(o, &info)) {
				o->profile = true;
				o->trace |= has_trace(path);
			} else {
				o->earlier = true;
			}
		}
		memwatch_heap_unref(heap);
	}
	close(fd);
}

/* Copies have other names: "COMM.PID-NNNN.mwheap". */
static void find_profiles(struct outcome *o)
{
	const char *directory = o->preload->directory;
	char number[16], path[PATH_MAX + 256];
	struct dirent *entry;
	DIR *dir = opendir(directory);

	if (!dir)
		return;
	snprintf(number, sizeof(number), ".%d.", (int)o->preload->child.pid);
	while ((entry = readdir(dir))) {
		const char *dot = strrchr(entry->d_name, '.');

		if (!dot || strcmp(dot, PROFILE_SUFFIX) || !strstr(entry->d_name, number))
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		add_profile(o, path);
	}
	closedir(dir);
}

void heap_outcome_check(const struct heap_preload *preload)
{
	struct outcome o = { .preload = preload };
	const char *comm = *preload->child.comm ? preload->child.comm : "its name is not known";

	if (mw_library_new(preload->cli, &o.ctx))
		return;
	find_profiles(&o);
	memwatch_ctx_unref(o.ctx);
	if (o.profile && (o.trace || !preload->trace))
		return;
	if (!o.profile && o.earlier)
		mw_warn(preload->cli, "%s: has no profile with the last name of the command, %s",
			preload->directory, comm);
	else
		mw_warn(preload->cli, "%s: has no %s of the command (%s)", preload->directory,
			o.profile ? "trace" : "profile", comm);
	if (!preload->cli->quiet && !getenv("MEMWATCH_HEAP_LOG"))
		mw_hint("with MEMWATCH_HEAP_LOG=1 in the environment, the profiler says why, "
			"unless it cannot be loaded at all");
}
