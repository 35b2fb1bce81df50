// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth monitor of "growth watch" and "growth record".
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <string.h>

#include "common/clock.h"
#include "common/interrupt.h"
#include "common/library.h"
#include "common/message.h"
#include "common/priority.h"
#include "growth/monitor.h"

#define MIN_INTERVAL_NS 50000000ULL
#define MAX_INTERVAL_NS 60000000000ULL
#define MAX_PROCESSES	1000000
#define MAX_SUSPECTS	512
#define MAX_BUDGET	100000

int mw_monitor_failed(struct memwatch_ctx *ctx, int err, const char *what)
{
	mw_error(mw_exit_of(err), what, "%s", mw_library_explain(ctx, err));
	if (err == -EPERM || err == -EACCES)
		mw_hint("run memwatchctl as root, or with CAP_BPF and CAP_PERFMON");
	return mw_exit_of(err);
}

/* A process of another user exists too, although kill() is not permitted. */
static bool process_exists(uint64_t pid)
{
	return pid <= INT_MAX && (!kill((pid_t)pid, 0) || errno != ESRCH);
}

static int select_cgroup(struct mw_monitor *monitor, const char *path)
{
	const char *name;
	int err = mw_cgroup_id(monitor->cli, path, &monitor->cgroup);

	if (err) {
		mw_error(MW_EXIT_FAILED, path, "%s", strerror(-err));
		mw_hint("--cgroup takes a path that begins with / and counts from where cgroup v2 "
			"is mounted");
		return MW_EXIT_FAILED;
	}
	name = mw_cgroups_path(monitor->cgroups, monitor->cgroup);
	if (!name) {
		mw_error(MW_EXIT_FAILED, path, "is not in the hierarchy that is mounted at %s",
			 mw_cgroup_mount(monitor->cli) ?: "/sys/fs/cgroup");
		mw_hint("--cgroup selects a cgroup of version 2");
		return MW_EXIT_FAILED;
	}
	snprintf(monitor->prefix, sizeof(monitor->prefix), "%s", strcmp(name, "/") ? name : "");
	return 0;
}

/*
 * A process that exhausts the machine must not delay the monitor that reports it. The
 * real-time priority is safe because the monitor limits itself to one percent of a CPU.
 */
static void raise_priority(const struct mw_cli *cli)
{
	if (mw_priority_raise() != MW_PRIORITY_REAL_TIME)
		mw_note(cli, "real-time priority is not permitted: alerts may be delayed on a busy "
			     "machine");
}

/* Returns 0, or MW_EXIT_USAGE after an error message. */
static int check_ranges(const struct mw_monitor_config *config, const char *command)
{
	if (config->interval < MIN_INTERVAL_NS || config->interval > MAX_INTERVAL_NS)
		return mw_error(MW_EXIT_USAGE, command, "--interval is not between 50ms and 60s");
	if (config->max > MAX_PROCESSES)
		return mw_error(MW_EXIT_USAGE, command, "--max-processes: the maximum is %d",
				MAX_PROCESSES);
	if (config->budget > MAX_BUDGET)
		return mw_error(MW_EXIT_USAGE, command, "--budget: the maximum is %d", MAX_BUDGET);
	if (config->suspects > MAX_SUSPECTS)
		return mw_error(MW_EXIT_USAGE, command, "--suspects: the maximum is %d",
				MAX_SUSPECTS);
	return 0;
}

int mw_monitor_init(struct mw_monitor *monitor, const struct mw_cli *cli,
		    const struct mw_monitor_config *config, const char *command)
{
	MEMWATCH_OPTS(memwatch_watch_opts, opts, .period_ns = config->interval,
		      .max_processes = (uint32_t)config->max, .rest_ppm = (uint32_t)config->budget,
		      .max_suspects = (uint32_t)config->suspects,
		      .flags = MEMWATCH_WATCH_OWN_THREAD |
			       (config->no_events ? MEMWATCH_WATCH_NO_EVENTS : 0) |
			       (config->no_touch ? MEMWATCH_WATCH_NO_TOUCH : 0) |
			       (config->no_where ? MEMWATCH_WATCH_NO_WHERE : 0));
	int err, rc;

	*monitor = (struct mw_monitor){
		.cli = cli,
		.entry = { .cli = cli, .command = command },
		.pid = (uint32_t)config->pid,
	};
	rc = check_ranges(config, command);
	if (rc)
		return rc;
	if (config->pid && !process_exists(config->pid))
		return mw_error(MW_EXIT_FAILED, command, "there is no process %" PRIu64,
				config->pid);
	rc = mw_library_new(cli, &monitor->ctx);
	if (rc)
		return rc;
	mw_cgroups_new(cli, &monitor->cgroups);
	if (config->cgroup)
		rc = select_cgroup(monitor, config->cgroup);
	if (rc)
		return rc;
	err = memwatch_watch_open(monitor->ctx, &opts, &monitor->watch);
	if (err)
		return mw_monitor_failed(monitor->ctx, err, command);
	raise_priority(cli);
	monitor->start_ns = monitor->now_ns = mw_clock_ns(CLOCK_MONOTONIC);
	monitor->end_ns = config->duration ? mw_clock_add(monitor->start_ns, config->duration)
					   : UINT64_MAX;
	return 0;
}

void mw_monitor_uninit(struct mw_monitor *monitor)
{
	mw_registry_entry_remove(&monitor->entry);
	memwatch_watch_unref(monitor->watch);
	mw_cgroups_free(monitor->cgroups);
	memwatch_ctx_unref(monitor->ctx);
}

bool mw_monitor_goes_on(struct mw_monitor *monitor)
{
	if (monitor->process_ended || mw_interrupted() || monitor->now_ns >= monitor->end_ns)
		return false;
	if (monitor->pid && !process_exists(monitor->pid)) {
		mw_warn(monitor->cli, "process %" PRIu32 " has ended", monitor->pid);
		monitor->process_ended = true;
	}
	return true;
}

int mw_monitor_wait(struct mw_monitor *monitor)
{
	uint64_t left_ns = monitor->end_ns - monitor->now_ns;
	int timeout_ms = left_ns < 1000000000 ? (int)(left_ns / 1000000) + 1 : 1000;
	int bits = memwatch_watch_poll(monitor->watch, timeout_ms);

	if (bits == -EINTR)
		bits = 0; /* Ctrl-C, or the end of a command of --exec */
	if (bits < 0)
		return bits;
	monitor->now_ns = mw_clock_ns(CLOCK_MONOTONIC);
	mw_registry_entry_update(&monitor->entry, monitor->ctx, monitor->watch, monitor->now_ns);
	return bits;
}

bool mw_monitor_selects(struct mw_monitor *monitor, uint32_t tgid, uint64_t cgroup)
{
	size_t len = strlen(monitor->prefix);
	const char *path;

	if (monitor->pid && monitor->pid != tgid)
		return false;
	if (!monitor->cgroup || monitor->cgroup == cgroup)
		return true;
	path = mw_cgroups_path(monitor->cgroups, cgroup);
	return path && !strncmp(path, monitor->prefix, len) && path[len] == '/';
}

bool mw_monitor_selects_group(const struct mw_monitor *monitor, const char *path)
{
	size_t len = strlen(monitor->prefix);

	if (monitor->pid)
		return false;
	if (!monitor->cgroup)
		return true;
	return !strncmp(path, monitor->prefix, len) && (!path[len] || path[len] == '/');
}
