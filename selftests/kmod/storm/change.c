// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Operations in which a process changes its program, its name or its user, or only uses
 * its RMID: by sleeping for long, or by computing.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "storm.h"

#define SLEEPERS_MAX 4

static pid_t sleepers[SLEEPERS_MAX]; /* of this worker; 0 is none */

void storm_change_exec(void)
{
	pid_t pid;

	if (storm_random_below(2)) {
		storm_vfork_exec_tiny();
		return;
	}
	pid = storm_fork();
	if (!pid) {
		storm_add(&storm_shared->execs, 1);
		storm_exec_tiny();
	}
	if (pid > 0)
		storm_reap(pid);
}

static void end_sleeper(unsigned int slot)
{
	if (sleepers[slot] <= 0)
		return;
	kill(sleepers[slot], SIGKILL);
	storm_reap(sleepers[slot]);
}

/* A child that wakes up now and then, and lives until its place is drawn again. */
void storm_change_sleeper(void)
{
	unsigned int slot = storm_random_below(SLEEPERS_MAX);

	end_sleeper(slot);
	sleepers[slot] = storm_fork();
	if (!sleepers[slot]) {
		for (;;)
			storm_sleep_us(20000);
	}
}

void storm_change_sleepers_end(void)
{
	unsigned int i;

	for (i = 0; i < SLEEPERS_MAX; i++)
		end_sleeper(i);
}

void storm_change_setuid(void)
{
	if (setuid(1 + storm_random_below(65000)))
		storm_count_failure();
	storm_spin_us(storm_random_below(200));
}

/* The leader renames itself, and often one of its threads does too. */
void storm_change_rename(void)
{
	prctl(PR_SET_NAME, storm_random_below(2) ? "renamed" : "otherwise");
	if (storm_random_below(2)) {
		storm_thread_start(0, STORM_BODY_RENAME, 0);
		storm_sleep_us(300);
	}
	if (storm_random_below(2))
		storm_spin_us(storm_random_below(300));
}

void storm_change_burn(void)
{
	storm_spin_us(500 + storm_random_below(8000));
}
