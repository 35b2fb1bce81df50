// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth monitor behind the commands.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "common/clock.h"
#include "growth/monitor.h"
#include "common/library.h"
#include "common/message.h"

int mw_monitor_failed(struct memwatch_ctx *ctx, int err, const char *what)
{
	mw_error(mw_exit_of(err), what, "%s", memwatch_ctx_error(ctx));
	if (err == -EPERM || err == -EACCES)
		mw_hint("run as root, or with CAP_BPF and CAP_PERFMON");
	return mw_exit_of(err);
}

/* Others' processes are there too: a signal may be refused to them. */
static bool process_exists(uint64_t pid)
{
	return pid <= INT_MAX && (!kill((pid_t)pid, 0) || errno != ESRCH);
}

static int find_cgroup(struct mw_monitor *monitor, const struct mw_cli *cli, const char *path)
{
	const char *name;
	int err = mw_cgroup_id(cli, path, &monitor->cgroup);

	if (err)
		return mw_error(MW_EXIT_FAILED, path, "%s", strerror(-err));
	name = mw_cgroups_path(monitor->cgroups, monitor->cgroup);
	snprintf(monitor->prefix, sizeof(monitor->prefix), "%s",
		 name && strcmp(name, "/") ? name : "");
	return 0;
}

/*
 * A monitor that waits behind those who eat up the machine is late when it is
 * needed. It may go first, because it keeps itself below one percent of a CPU;
 * what it starts may not.
 */
static void go_first(const struct mw_cli *cli)
{
	struct sched_param param = { .sched_priority = sched_get_priority_min(SCHED_RR) };

	if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &param))
		mw_note(cli, "no real-time priority: alerts may be late on a busy machine");
}

int mw_monitor_init(struct mw_monitor *monitor, const struct mw_cli *cli,
		    const struct mw_monitor_config *config, const char *what)
{
	MEMWATCH_OPTS(memwatch_watch_opts, opts, .period_ns = config->interval,
		      .max_processes = (uint32_t)config->max,
		      .flags = config->no_events ? MEMWATCH_WATCH_NO_EVENTS : 0);
	int err, rc;

	*monitor = (struct mw_monitor){ .pid = (uint32_t)config->pid };
	if (config->max > 1000000)
		return mw_error(MW_EXIT_USAGE, what, "at most a million processes");
	if (config->pid && !process_exists(config->pid))
		return mw_error(MW_EXIT_FAILED, what, "there is no process %" PRIu64, config->pid);
	rc = mw_library_new(cli, &monitor->ctx);
	if (rc)
		return rc;
	mw_cgroups_new(cli, &monitor->cgroups);
	if (config->cgroup)
		rc = find_cgroup(monitor, cli, config->cgroup);
	if (rc)
		return rc;
	err = memwatch_watch_open(monitor->ctx, &opts, &monitor->watch);
	if (err)
		return mw_monitor_failed(monitor->ctx, err, what);
	go_first(cli);
	return 0;
}

void mw_monitor_uninit(struct mw_monitor *monitor)
{
	memwatch_watch_unref(monitor->watch);
	mw_cgroups_free(monitor->cgroups);
	memwatch_ctx_unref(monitor->ctx);
}

bool mw_monitor_gone(const struct mw_monitor *monitor, const struct mw_cli *cli)
{
	if (!monitor->pid || process_exists(monitor->pid))
		return false;
	mw_warn(cli, "process %" PRIu32 " has ended", monitor->pid);
	return true;
}

bool mw_monitor_wants(struct mw_monitor *monitor, uint32_t tgid, uint64_t cgroup)
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

uint64_t mw_monitor_end(const struct mw_monitor_config *config)
{
	return config->duration ? mw_clock_ns(CLOCK_MONOTONIC) + config->duration : UINT64_MAX;
}
