// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Runs the hooks. The values in their environment are escaped, because a shell script that
 * prints them could otherwise send control characters of a process name to a terminal.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/message.h"
#include "growth/hooks.h"
#include "growth/verdict.h"
#include "text/escape.h"

static void set_env_text(const char *name, const char *value)
{
	char text[4096];

	setenv(name, mw_escape(value, text, sizeof(text)), 1);
}

static void set_env_uint(const char *name, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	setenv(name, text, 1);
}

static void set_environment(const struct mw_hook_event *event, uint64_t count)
{
	const struct memwatch_record_growth *record = &event->record;
	char sentence[sizeof(event->sentence) + 64];

	set_env_text("MEMWATCH_EVENT", event->name);
	set_env_uint("MEMWATCH_COUNT", count);
	unsetenv("MEMWATCH_PID");
	unsetenv("MEMWATCH_COMM");
	unsetenv("MEMWATCH_CGROUP");
	unsetenv("MEMWATCH_CLASS");
	if (event->cgroup[0]) {
		set_env_text("MEMWATCH_CGROUP", event->cgroup);
		set_env_text("MEMWATCH_CLASS", record->comm);
	} else {
		set_env_uint("MEMWATCH_PID", record->tgid);
		set_env_text("MEMWATCH_COMM", record->comm);
	}
	set_env_text("MEMWATCH_REASON", memwatch_growth_reason_name(record->reason));
	set_env_uint("MEMWATCH_CONFIDENCE", record->confidence);
	unsetenv("MEMWATCH_SLOPE_BYTES_PER_SECOND");
	if (mw_verdict_has_slope(record->verdict, record->slope))
		set_env_uint("MEMWATCH_SLOPE_BYTES_PER_SECOND", record->slope);
	set_env_uint("MEMWATCH_SIGNAL_BYTES", record->signal_bytes);
	unsetenv("MEMWATCH_ETA_SECONDS");
	if (record->eta_s != UINT32_MAX)
		set_env_uint("MEMWATCH_ETA_SECONDS", record->eta_s);
	if (count > 1)
		snprintf(sentence, sizeof(sentence), "%s (and %" PRIu64 " more event%s)",
			 event->sentence, count - 1, count == 2 ? "" : "s");
	else
		snprintf(sentence, sizeof(sentence), "%s", event->sentence);
	set_env_text("MEMWATCH_SENTENCE", sentence);
}

/*
 * What the child does after the fork: it must not inherit the priority, the signal handling
 * and the descriptors of this program. What it prints goes to standard error, because
 * standard output has the alerts. Does not return.
 */
static void run_command(const struct mw_hooks *hooks, const struct mw_hook_event *event,
			uint64_t count)
{
	struct sched_param param = { 0 };
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	set_environment(event, count);
	sched_setscheduler(0, SCHED_OTHER, &param);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	dup2(null, STDIN_FILENO);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	close_range(STDERR_FILENO + 1, UINT_MAX, 0);
	execl("/bin/sh", "sh", "-c", hooks->command, (char *)NULL);
	_exit(127);
}

static bool is_same_process(const struct mw_hooks_running *running,
			    const struct memwatch_record_growth *record)
{
	return running->pid && running->tgid == record->tgid &&
	       running->start_time_ns == record->start_time_ns;
}

/* Returns a free place; NULL if there is none, or if a command for this process still runs. */
static struct mw_hooks_running *find_place(struct mw_hooks *hooks,
					   const struct memwatch_record_growth *record)
{
	struct mw_hooks_running *free_place = NULL;

	for (size_t i = 0; i < MW_HOOKS_RUNNING_MAX; i++) {
		if (is_same_process(&hooks->running[i], record))
			return NULL;
		if (!hooks->running[i].pid)
			free_place = &hooks->running[i];
	}
	return free_place;
}

/* Returns whether the command was started. Its count includes all merged events. */
static bool start_command(struct mw_hooks *hooks, const struct mw_hook_event *event,
			  uint64_t merged)
{
	struct mw_hooks_running *place = find_place(hooks, &event->record);
	pid_t pid = place ? fork() : -1;

	if (!place)
		return false;
	if (!pid)
		run_command(hooks, event, 1 + merged + hooks->merged);
	if (pid < 0) {
		if (!hooks->failed)
			mw_warn(hooks->cli, "--exec: %s; the command will be started later",
				strerror(errno));
		hooks->failed = true;
		return false;
	}
	*place = (struct mw_hooks_running){ pid, event->record.tgid, event->record.start_time_ns };
	hooks->merged = 0;
	return true;
}

static void tell_about_merging(struct mw_hooks *hooks)
{
	if (!hooks->told)
		mw_warn(hooks->cli,
			"--exec: too many events to run a command for each: one command may "
			"report several events, see MEMWATCH_COUNT");
	hooks->told = true;
}

enum mw_hook_state mw_hooks_add(struct mw_hooks *hooks, const struct mw_hook_event *event)
{
	mw_hooks_poll(hooks);
	for (size_t i = 0; i < hooks->nr_waiting; i++) {
		struct mw_hooks_waiting *waiting = &hooks->waiting[i];

		if (waiting->event.record.tgid != event->record.tgid ||
		    waiting->event.record.start_time_ns != event->record.start_time_ns)
			continue;
		waiting->event = *event;
		waiting->merged++;
		tell_about_merging(hooks);
		return MW_HOOK_MERGED;
	}
	if (start_command(hooks, event, 0))
		return MW_HOOK_STARTED;
	if (hooks->nr_waiting < MW_HOOKS_WAITING_MAX) {
		hooks->waiting[hooks->nr_waiting++] = (struct mw_hooks_waiting){ .event = *event };
		return MW_HOOK_WAITING;
	}
	hooks->merged++;
	tell_about_merging(hooks);
	return MW_HOOK_MERGED;
}

const char *mw_hook_state_name(enum mw_hook_state state)
{
	static const char *const names[] = { "started", "waiting", "merged" };

	return names[state];
}

/* Only the commands are waited for: other children belong to somebody else. */
static void reap_commands(struct mw_hooks *hooks)
{
	for (size_t i = 0; i < MW_HOOKS_RUNNING_MAX; i++) {
		struct mw_hooks_running *running = &hooks->running[i];

		if (running->pid && waitpid(running->pid, NULL, WNOHANG) == running->pid)
			running->pid = 0;
	}
}

void mw_hooks_poll(struct mw_hooks *hooks)
{
	size_t kept = 0;

	reap_commands(hooks);
	for (size_t i = 0; i < hooks->nr_waiting; i++) {
		struct mw_hooks_waiting *waiting = &hooks->waiting[i];

		if (!start_command(hooks, &waiting->event, waiting->merged))
			hooks->waiting[kept++] = *waiting;
	}
	hooks->nr_waiting = kept;
}

static bool has_work(const struct mw_hooks *hooks)
{
	bool work = hooks->nr_waiting;

	for (size_t i = 0; i < MW_HOOKS_RUNNING_MAX; i++)
		work |= hooks->running[i].pid != 0;
	return work;
}

void mw_hooks_finish(struct mw_hooks *hooks)
{
	uint64_t end_ns = mw_clock_ns(CLOCK_MONOTONIC) + MW_HOOKS_FINISH_NS;
	uint64_t left;

	for (mw_hooks_poll(hooks); has_work(hooks); mw_hooks_poll(hooks)) {
		if (mw_clock_ns(CLOCK_MONOTONIC) >= end_ns)
			break;
		poll(NULL, 0, 20);
	}
	left = hooks->merged;
	for (size_t i = 0; i < hooks->nr_waiting; i++)
		left += 1 + hooks->waiting[i].merged;
	if (left)
		mw_warn(hooks->cli,
			"--exec: the monitor ended before the command ran for %" PRIu64 " event%s",
			left, left == 1 ? "" : "s");
}
