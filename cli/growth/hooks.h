/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The hooks of "growth watch --exec": a shell command that is run for alerts, or for notices
 * too, and for their ends. Whoever can make processes that leak decides how many events there are,
 * so few commands run at a time, one of them for each process, and few events wait. All
 * other events are merged: a command is told how many events it stands for, and the sum
 * over all commands is the number of events.
 */
#ifndef MW_GROWTH_HOOKS_H
#define MW_GROWTH_HOOKS_H

#include <sys/types.h>

#include <memwatch/memwatch.h>

#include "common/cmd.h"

#define MW_HOOKS_RUNNING_MAX 4
#define MW_HOOKS_WAITING_MAX 16

/* How long mw_hooks_finish() waits for commands. */
#define MW_HOOKS_FINISH_NS 5000000000ULL

/* What happened to an event. */
enum mw_hook_state {
	MW_HOOK_STARTED, /* its command runs */
	MW_HOOK_WAITING, /* its command will run when another one has ended */
	MW_HOOK_MERGED,	 /* the command of another event counts it */
};

/* A notice or an alert, or the end of one. */
struct mw_hook_event {
	const char *name; /* what happened, as mw_alert_name() says it */
	struct memwatch_record_growth record;
	char cgroup[1024]; /* that it is about, "/" for the machine; "": it is about a process */
	char sentence[2048];
};

struct mw_hooks_waiting {
	struct mw_hook_event event;
	uint64_t merged; /* earlier events of this process */
};

struct mw_hooks_running {
	pid_t pid; /* of the command; 0: none */
	uint32_t tgid;
	uint64_t start_time_ns;
};

/* The caller sets @cli and @command, the rest is zero. */
struct mw_hooks {
	const struct mw_cli *cli;
	const char *command; /* for sh -c; NULL: no hooks */
	struct mw_hooks_running running[MW_HOOKS_RUNNING_MAX];
	struct mw_hooks_waiting waiting[MW_HOOKS_WAITING_MAX]; /* the oldest first */
	size_t nr_waiting;
	uint64_t merged; /* events for which there was no room */
	bool told;	 /* that events are merged */
	bool failed;	 /* a command could not be started, and this was told */
};

/* Takes the event over. Does not block. */
enum mw_hook_state mw_hooks_add(struct mw_hooks *hooks, const struct mw_hook_event *event);
/* "started", "waiting" or "merged". */
const char *mw_hook_state_name(enum mw_hook_state state);
/*
 * Reaps the commands that have ended and starts those that wait. To be called at least once
 * a second; the signal SIGCHLD should end the wait of the caller.
 */
void mw_hooks_poll(struct mw_hooks *hooks);
/*
 * Runs the commands that wait and waits for all to end, for MW_HOOKS_FINISH_NS at most.
 * Commands that run longer are left alone. Warns if there were events left.
 */
void mw_hooks_finish(struct mw_hooks *hooks);

#endif
