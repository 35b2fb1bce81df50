/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth monitor as "growth watch" and "growth record" use it: its options, the
 * processes that it selects, and the loop that waits for the next round until the
 * monitoring ends.
 */
#ifndef MW_GROWTH_MONITOR_H
#define MW_GROWTH_MONITOR_H

#include <limits.h>

#include <memwatch/memwatch.h>

#include "common/cgroup.h"
#include "common/cmd.h"
#include "growth/registry.h"

struct mw_monitor_config {
	uint64_t interval;  /* ns */
	uint64_t duration;  /* ns; 0: no limit */
	uint64_t max;	    /* number of processes; 0: default */
	uint64_t suspects;  /* whose pages are followed; 0: default */
	uint64_t budget;    /* of the rounds, in millionths of one CPU; 0: default */
	uint64_t pid;	    /* 0: all processes */
	const char *cgroup; /* NULL: all cgroups */
	bool no_events;
	bool no_touch;
	bool no_where;
};

/*
 * The defaults and the options for a command whose configuration is a @type with a member "monitor"
 * of struct mw_monitor_config. clang-format would indent the initialisers as blocks.
 */
/* clang-format off */
#define MW_MONITOR_DEFAULTS { .interval = 5000000000ULL }
#define MW_MONITOR_OPTIONS(type, what)                                                             \
	{ "interval", 'i', MW_OPTION_DURATION, offsetof(type, monitor.interval), "TIME",           \
	  "time between " what "; default: 5s", NULL },                                            \
	{ "duration", 'd', MW_OPTION_DURATION, offsetof(type, monitor.duration), "TIME",           \
	  "stop after TIME; default: run until Ctrl-C", NULL },                                    \
	{ "pid", 'p', MW_OPTION_COUNT, offsetof(type, monitor.pid), "PID",                          \
	  "monitor only this process, until it ends", NULL },                                      \
	{ "cgroup", 'c', MW_OPTION_STRING, offsetof(type, monitor.cgroup), "PATH",                 \
	  "monitor only processes in this cgroup and below", NULL }
#define MW_MONITOR_TOUCH_OPTIONS(type)                                                             \
	{ "budget", 0, MW_OPTION_COUNT, offsetof(type, monitor.budget), "PPM",                      \
	  "CPU time of the rounds, in millionths of one CPU; default: 1000", NULL },              \
	{ "suspects", 0, MW_OPTION_COUNT, offsetof(type, monitor.suspects), "N",                    \
	  "number of growing processes whose pages are followed; default: 16", NULL },            \
	{ "no-touch", 0, MW_OPTION_FLAG, offsetof(type, monitor.no_touch), NULL,                   \
	  "do not find out whether growing processes use what they gain", NULL }
/* clang-format on */

struct mw_monitor {
	const struct mw_cli *cli;
	struct memwatch_ctx *ctx;
	struct memwatch_watch *watch;
	struct mw_cgroups *cgroups;
	struct mw_registry_entry entry;
	uint32_t pid;	       /* of the selected process; 0: all */
	uint64_t cgroup;       /* id of the selected cgroup; 0: all */
	char prefix[PATH_MAX]; /* its path; "" for the root */
	uint64_t start_ns;     /* times are on CLOCK_MONOTONIC */
	uint64_t end_ns;       /* UINT64_MAX: no limit */
	uint64_t now_ns;       /* when mw_monitor_wait() returned */
	bool process_ended;    /* the selected process */
};

/*
 * Opens the monitor. @command is the name of the command, "growth watch". Returns 0, or
 * an exit code after an error message; the monitor must be uninitialised in both cases.
 */
int mw_monitor_init(struct mw_monitor *monitor, const struct mw_cli *cli,
		    const struct mw_monitor_config *config, const char *command);
void mw_monitor_uninit(struct mw_monitor *monitor);

/*
 * Returns whether the monitoring goes on: it ends after a signal, when the time is over,
 * and when the selected process has ended. To be called before each mw_monitor_wait():
 * after the end of the process there is one more round, for what it did until then.
 */
bool mw_monitor_goes_on(struct mw_monitor *monitor);

/*
 * Waits, for a second at most, until a round is complete or there are records to read.
 * Returns a set of MEMWATCH_WATCH_* bits, which is 0 after a signal or a second, or a
 * negative errno.
 */
int mw_monitor_wait(struct mw_monitor *monitor);

/* Returns whether a process, which is in @cgroup, is selected by the options. */
bool mw_monitor_selects(struct mw_monitor *monitor, uint32_t tgid, uint64_t cgroup);

/* The same for a cgroup with a path, or the machine ("/"). */
bool mw_monitor_selects_group(const struct mw_monitor *monitor, const char *path);

/*
 * Prints the error message for a call of a monitor that returned @err. Returns the exit
 * code.
 */
int mw_monitor_failed(struct memwatch_ctx *ctx, int err, const char *what);

#endif
