// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reports of a trace that the profiler has recorded: once, or again and again while the process
 * goes on. Then only what is new is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmds/heap/profiles.h"
#include "cmds/stale/process.h"
#include "cmds/stale/stale.h"
#include "cmds/stale/traces.h"
#include "common/clock.h"
#include "common/interrupt.h"
#include "common/library.h"
#include "common/message.h"
#include "common/parse.h"

#define INTERVAL_NS (10 * 1000000000ULL)
#define STEP_NS	    100000000

/*
 * What a thread has done is in the trace a moment later, and accesses are written once a second.
 * What is younger is left for the next report.
 */
#define SETTLE_NS 2000000000ULL

/**
 * struct recording - what reads a recorded trace, without the permissions of root
 * @choice: how its profile is read
 * @interval_ns: between two reports; 0: there is only one
 * @ended: this is the last report: everything is settled
 * @opts: of the trace, with the file for sorting
 * @result: the trace, which is replayed when the profile was read
 * @fd: of the trace
 * @process: the one that records it, as stale_process_open() returns it; -1: it does not matter
 * @access_fds, @nr_access_fds: of the files of accesses
 * @err: of the replay
 */
struct recording {
	const struct mw_cli *cli;
	const struct stale_report_config *config;
	struct memwatch_stale_opts opts;
	struct stale_trace trace;
	struct heap_choice choice;
	struct stale_result result;
	uint64_t interval_ns;
	bool ended;
	int fd;
	int process;
	int access_fds[STALE_ACCESS_FILES];
	unsigned int nr_access_fds;
	int err;
};

/* ----------------------------------------------------------------- files */

/* The trace is useful without its accesses. */
static void open_accesses(struct recording *w)
{
	char path[PATH_MAX];

	for (unsigned int i = 0; i < STALE_ACCESS_FILES; i++) {
		int fd;

		if (!stale_access_path(&w->trace, i, path))
			return;
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (fd < 0) {
			if (errno != ENOENT)
				mw_warn(w->cli, "%s: %s; accesses are missing", path,
					strerror(errno));
			return;
		}
		w->access_fds[w->nr_access_fds++] = fd;
	}
	mw_warn(w->cli, "%s: only the first %d files of accesses are read", w->trace.path,
		STALE_ACCESS_FILES);
}

static void add_accesses(struct recording *w, struct memwatch_ctx *ctx)
{
	char path[PATH_MAX];

	for (unsigned int i = 0; i < w->nr_access_fds; i++) {
		if (!memwatch_stale_add_accesses_fd(w->result.stale, w->access_fds[i]))
			continue;
		stale_access_path(&w->trace, i, path);
		mw_warn(w->cli, "%s: %s; its accesses are missing", path, memwatch_ctx_error(ctx));
	}
}

/* Accesses are sorted, and where root's rights are given up, no file can be created any more. */
static void open_sort_file(struct recording *w)
{
	const char *directory = w->opts.directory ? w->opts.directory : "/var/tmp";

	w->opts.sort_fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (w->opts.sort_fd < 0)
		w->opts.sort_fd = -errno;
}

/* While root's rights are there: other users may not see the process. */
static int open_process(struct recording *w)
{
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	int rc = mw_library_new(w->cli, &ctx);

	if (rc)
		return rc;
	w->process = stale_process_open(w->cli, ctx, w->fd);
	if (w->process < 0 && w->process != -ESRCH)
		mw_warn(w->cli,
			"%s: the end of the process cannot be seen (%s); the reports go on until a "
			"signal arrives",
			w->trace.path,
			w->process == -EREMOTE ? "it is in another pid namespace"
					       : strerror(-w->process));
	return 0;
}

static int open_trace(struct recording *w)
{
	w->fd = open(w->trace.path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (w->fd < 0)
		return mw_error_errno(-errno, w->trace.path);
	open_accesses(w);
	if (w->nr_access_fds)
		open_sort_file(w);
	return w->interval_ns ? open_process(w) : 0;
}

static void close_trace(struct recording *w)
{
	for (unsigned int i = 0; i < w->nr_access_fds; i++)
		close(w->access_fds[i]);
	if (w->opts.sort_fd > 0)
		close(w->opts.sort_fd);
	if (w->process >= 0)
		close(w->process);
	close(w->fd);
}

/* --------------------------------------------------------------- reports */

/* Whether the process is gone, or its trace is complete. poll() ignores a negative descriptor. */
static bool has_ended(const struct recording *w)
{
	struct pollfd process = { .fd = w->process, .events = POLLIN };

	return w->result.info.state != MEMWATCH_STALE_STATE_ACTIVE || w->process == -ESRCH ||
	       poll(&process, 1, 0) > 0;
}

/* Replays what is new, up to a moment that is settled. */
static int replay_recording(void *data, struct heap_profiles *profiles)
{
	struct recording *w = data;
	struct memwatch_stale *stale = w->result.stale;
	uint64_t until = UINT64_MAX;

	w->err = stale ? 0 : memwatch_stale_new(profiles->ctx, &w->opts, &w->result.stale);
	if (!w->err && !stale) {
		w->err = memwatch_stale_open_fd(w->result.stale, w->fd);
		if (!w->err)
			add_accesses(w, profiles->ctx);
		stale = w->result.stale;
		w->result.info.sz = sizeof(w->result.info);
		if (!w->err && !memwatch_stale_get_info(stale, &w->result.info))
			w->ended = has_ended(w);
	}
	if (!w->ended)
		until = mw_clock_ns(CLOCK_MONOTONIC) - SETTLE_NS;
	if (!w->err && w->interval_ns)
		w->err = memwatch_stale_resume(stale, until);
	if (!w->err)
		w->err = stale_replay(w->cli, stale);
	if (!w->err && profiles->count)
		memwatch_stale_add_places(stale, profiles->heap);
	return 0;
}

static int print_recording(struct recording *w, struct heap_profiles *profiles)
{
	w->result.named = !w->err && profiles->count &&
			  !memwatch_stale_name_sites(w->result.stale, profiles->heap);
	return stale_print_report(&w->result, profiles->ctx, w->config, w->err);
}

/* Returns false if a signal has arrived. */
static bool wait_for_next(const struct recording *w)
{
	uint64_t end_ns = mw_clock_ns(CLOCK_MONOTONIC) + w->interval_ns;
	const struct timespec step = { .tv_nsec = STEP_NS };

	while (!mw_interrupted() && mw_clock_ns(CLOCK_MONOTONIC) < end_ns && !has_ended(w))
		nanosleep(&step, NULL);
	return !mw_interrupted();
}

static void print_time(const struct recording *w)
{
	time_t now = time(NULL);
	struct tm local;
	char text[32];

	if (w->cli->format != MW_FORMAT_TABLE || !localtime_r(&now, &local))
		return;
	strftime(text, sizeof(text), "%F %T", &local);
	printf("\n%s\n", text);
}

/* The last report has everything, and is that of a process that has ended. */
static int follow_recording(struct recording *w, struct heap_profiles *profiles)
{
	int rc = print_recording(w, profiles);

	while (!w->err && !w->ended && (rc == MW_EXIT_DONE || rc == MW_EXIT_NOTHING)) {
		fflush(stdout);
		if (!wait_for_next(w))
			break;
		w->ended = has_ended(w);
		rc = heap_profiles_again(profiles, &w->choice);
		if (rc)
			return rc;
		print_time(w);
		rc = print_recording(w, profiles);
	}
	return rc;
}

static int report_recording(void *data)
{
	struct recording *w = data;
	char *files[] = { w->trace.profile };
	struct heap_profiles profiles;
	int rc = open_trace(w);

	if (rc)
		return rc;
	rc = heap_profiles_open(&profiles, w->cli, &w->choice, !access(*files, R_OK), files);
	if (!rc)
		rc = w->interval_ns ? follow_recording(w, &profiles)
				    : print_recording(w, &profiles);
	memwatch_stale_unref(w->result.stale);
	heap_profiles_close(&profiles);
	close_trace(w);
	return rc;
}

static int read_interval(struct recording *w)
{
	const char *text = w->config->follow;
	int err;

	if (!text)
		return 0;
	w->interval_ns = INTERVAL_NS;
	err = *text ? mw_parse_duration(text, &w->interval_ns) : 0;
	if (err)
		return mw_error(MW_EXIT_USAGE, "--follow", "'%s' %s", text,
				mw_parse_duration_why(err));
	if (!w->interval_ns)
		return mw_error(MW_EXIT_USAGE, "--follow", "the interval must be above 0");
	return 0;
}

int stale_report_recording(const struct mw_cli *cli, const struct stale_report_config *config,
			   const struct memwatch_stale_opts *opts, const char *name)
{
	struct recording w = {
		.cli = cli,
		.config = config,
		.opts = *opts,
		.process = -1,
		.choice = { .sysroot = config->sysroot, .no_symbols = config->no_symbols },
	};
	int rc = read_interval(&w);

	if (!rc)
		rc = stale_trace_find(&w.trace, cli, name, config->pid);
	if (rc)
		return rc;
	if (w.trace.others)
		mw_warn(cli, "%s is shown; other traces in %s: %" PRIu64 " (--pid PID)",
			w.trace.path, name, w.trace.others);
	w.result = (struct stale_result){ .cli = cli,
					  .path = w.trace.path,
					  .objects = config->objects };
	w.choice.keep = w.interval_ns;
	w.choice.before_symbols = replay_recording;
	w.choice.data = &w;
	return heap_profiles_run(report_recording, &w);
}
