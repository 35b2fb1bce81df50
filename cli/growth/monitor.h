/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What "growth watch" and "growth record" have in common: the monitor, its
 * options, and which processes are of interest.
 */
#ifndef MW_GROWTH_MONITOR_H
#define MW_GROWTH_MONITOR_H

#include <memwatch/memwatch.h>

#include "common/cgroup.h"
#include "common/cmd.h"

struct mw_monitor_config {
	uint64_t interval;  /* ns, 0: default */
	uint64_t duration;  /* ns, 0: for ever */
	uint64_t max;	    /* processes, 0: default */
	uint64_t pid;	    /* 0: all */
	const char *cgroup; /* NULL: all */
	bool no_events;
};

/*
 * Options of a command whose configuration is a @type with such a "monitor". The
 * formatter takes initializers in a macro for blocks.
 */
/* clang-format off */
#define MW_MONITOR_OPTIONS(type, between)                                                          \
	{ "interval", 'i', MW_OPTION_DURATION, offsetof(type, monitor.interval), "TIME",           \
	  "time between " between ", 5s if not given", NULL },                                     \
	{ "duration", 'd', MW_OPTION_DURATION, offsetof(type, monitor.duration), "TIME",           \
	  "stop after TIME; else Ctrl-C does", NULL },                                             \
	{ "pid", 'p', MW_OPTION_UINT, offsetof(type, monitor.pid), "PID", "only this process",     \
	  NULL },                                                                                  \
	{ "cgroup", 'c', MW_OPTION_STRING, offsetof(type, monitor.cgroup), "PATH",                 \
	  "only processes in this cgroup and below", NULL }
/* clang-format on */

struct mw_monitor {
	struct memwatch_ctx *ctx;
	struct memwatch_watch *watch;
	struct mw_cgroups *cgroups;
	uint32_t pid;
	uint64_t cgroup;
	char prefix[256]; /* path of the cgroup, without the last slash */
};

/* 0 or an exit code, with a message. @what is the command. */
int mw_monitor_init(struct mw_monitor *monitor, const struct mw_cli *cli,
		    const struct mw_monitor_config *config, const char *what);
void mw_monitor_uninit(struct mw_monitor *monitor);

/*
 * Is the one process that was asked for gone? One that ended after this was asked
 * may still have told something: ask before what is there is taken.
 */
bool mw_monitor_gone(const struct mw_monitor *monitor, const struct mw_cli *cli);

/* Is a process, with the cgroup it is in, of interest? One below is in it. */
bool mw_monitor_wants(struct mw_monitor *monitor, uint32_t tgid, uint64_t cgroup);

/* The library said no. */
int mw_monitor_failed(struct memwatch_ctx *ctx, int err, const char *what);

/* When @config says it is over, on CLOCK_MONOTONIC; UINT64_MAX: never. */
uint64_t mw_monitor_end(const struct mw_monitor_config *config);

#endif
