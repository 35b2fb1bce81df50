// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Runs the hooks of "growth watch --exec" without a monitor, for the tests:
 *
 *   hooks COMMAND EVENTS PROCESSES [NAME...]   as many alerts at once, then wait for all
 *   hooks --end COMMAND EVENTS PROCESSES       the same, but end as after a signal
 *
 * Alert i is of process 2000 + i % PROCESSES. The file "go" is created when all alerts have
 * been taken, so that a command can wait for that. Prints what happened to the alerts.
 */
#include <fcntl.h>
#include <locale.h>
#include <locale.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "growth/hooks.h"

/* What a command must not inherit: descriptors without close-on-exec, and the priority. */
static void make_privileges(void)
{
	struct sched_param param = { .sched_priority = 1 };

	for (int i = 0; i < 8; i++)
		dup(STDERR_FILENO);
	/* Needs privileges; without them the policy of the commands is the default anyway. */
	sched_setscheduler(0, SCHED_RR, &param);
}

static void make_event(unsigned int process, int nr_names, char **names, struct mw_hook_event *ret)
{
	*ret = (struct mw_hook_event){
		.name = "alert",
		.record = {
			.tgid = 2000 + process,
			.start_time_ns = 1000,
			.what = MEMWATCH_GROWTH_ALERTED,
			.eta_s = 60,
		},
	};
	strncpy(ret->record.comm, nr_names ? names[process % (unsigned int)nr_names] : "plain",
		sizeof(ret->record.comm) - 1);
	snprintf(ret->sentence, sizeof(ret->sentence), "process %s (%u): memory grew",
		 ret->record.comm, ret->record.tgid);
}

static bool has_children(void)
{
	siginfo_t info;

	return !waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
}

static void finish(struct mw_hooks *hooks, bool end)
{
	uint64_t begin = mw_clock_ns(CLOCK_MONOTONIC);
	siginfo_t info = { 0 };

	if (end) {
		mw_hooks_finish(hooks);
		printf("ended in time: %s\n",
		       mw_clock_ns(CLOCK_MONOTONIC) - begin < 2 * MW_HOOKS_FINISH_NS ? "yes"
										     : "no");
	}
	while (!end && (hooks->nr_waiting || has_children())) {
		mw_hooks_poll(hooks);
		usleep(10000);
	}
	waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
	printf("zombies: %s\n", info.si_pid ? "yes" : "none");
}

int main(int argc, char **argv)
{
	bool end = argc > 1 && !strcmp(argv[1], "--end");
	unsigned int count[3] = { 0 }, events, processes;
	struct mw_hooks hooks = { 0 };
	struct mw_cli cli = { 0 };
	struct mw_hook_event event;

	setlocale(LC_CTYPE, "");
	setlocale(LC_CTYPE, "");
	argv += end;
	argc -= end;
	if (argc < 4)
		return 2;
	hooks.cli = &cli;
	hooks.command = argv[1];
	events = (unsigned int)atoi(argv[2]);
	processes = (unsigned int)atoi(argv[3]);
	make_privileges();
	for (unsigned int i = 0; i < events; i++) {
		make_event(i % processes, argc - 4, argv + 4, &event);
		count[mw_hooks_add(&hooks, &event)]++;
	}
	close(open("go", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	for (int i = 0; i < 3; i++)
		printf("%s: %u\n", mw_hook_state_name(i), count[i]);
	finish(&hooks, end);
	return 0;
}
