// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Operations that differ in how a process ends, and in who waits for it.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "storm.h"

/* Some children stay zombies for a few milliseconds. */
void storm_death_zombie(void)
{
	unsigned int i, n = 2 + storm_random_below(6);
	pid_t pid[8];

	for (i = 0; i < n; i++) {
		pid[i] = storm_fork();
		if (!pid[i])
			_exit(0);
	}
	storm_sleep_us(storm_random_below(6000));
	for (i = 0; i < n; i++)
		if (pid[i] > 0)
			storm_reap(pid[i]);
}

/* The grandchild outlives its parent; the main process of the storm reaps it. */
void storm_death_daemon(void)
{
	pid_t pid = storm_fork();

	if (!pid) {
		if (!storm_fork()) {
			storm_sleep_us(storm_random_below(4000));
			_exit(0);
		}
		_exit(0);
	}
	if (pid > 0)
		storm_reap(pid);
}

/* The parent ignores SIGCHLD, so the kernel reaps the children. */
void storm_death_autoreap(void)
{
	unsigned int i, n = 1 + storm_random_below(4);

	signal(SIGCHLD, SIG_IGN);
	for (i = 0; i < n; i++)
		if (!storm_fork())
			_exit(0);
	storm_sleep_us(storm_random_below(1000));
}

static void wait_to_be_killed(void)
{
	unsigned int i, n = storm_random_below(STORM_THREADS_MAX);

	for (i = 0; i < n; i++)
		storm_thread_start(i, storm_random_below(2) ? STORM_BODY_PAUSE : STORM_BODY_SPIN,
				   50000);
	for (;;)
		pause();
}

void storm_death_kill(void)
{
	pid_t pid = storm_fork();

	if (!pid)
		wait_to_be_killed();
	if (pid < 0)
		return;
	storm_sleep_us(storm_random_below(2000));
	kill(pid, SIGKILL);
	storm_reap(pid);
}

/* A traced child stops, and is continued or killed. */
void storm_death_ptrace(void)
{
	pid_t pid = storm_fork();
	int status;

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(0);
	}
	if (pid < 0)
		return;
	if (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
		if (storm_random_below(3))
			ptrace(PTRACE_CONT, pid, NULL, NULL);
		else
			kill(pid, SIGKILL);
		storm_reap(pid);
	}
}
