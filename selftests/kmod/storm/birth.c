// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Operations that differ in how a process is created.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "storm.h"

void storm_birth_fork(void)
{
}

/* The child borrows the stack of its parent: it must not do more than to exit. */
void storm_birth_vfork(void)
{
	pid_t pid = vfork();

	if (!pid)
		_exit(0);
	if (pid < 0) {
		storm_count_failure();
		return;
	}
	storm_add(&storm_shared->lifetimes, 1);
	storm_reap(pid);
}

void storm_birth_spawn(void)
{
	char *const arguments[] = { (char *)"tiny", NULL };
	char *const environment[] = { NULL };
	pid_t pid;

	errno = posix_spawn(&pid, storm_tiny, NULL, NULL, arguments, environment);
	if (errno) {
		storm_count_failure();
		return;
	}
	storm_add(&storm_shared->lifetimes, 1);
	storm_add(&storm_shared->execs, 1);
	storm_reap(pid);
}

/* Processes, not threads, that share the memory of their parent, as in LinuxThreads. */
void storm_birth_clone_vm(void)
{
	unsigned int i, n = 1 + storm_random_below(2);
	pid_t pid[2];

	for (i = 0; i < n; i++)
		pid[i] = storm_clone_vm(i,
					storm_random_below(4) ? STORM_BODY_EXIT : STORM_BODY_SLEEP,
					storm_random_below(500));
	for (i = 0; i < n; i++)
		if (pid[i] > 0)
			storm_reap(pid[i]);
}

void storm_birth_clone3(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	long pid;

	if (storm_random_below(2))
		args.flags = CLONE_CLEAR_SIGHAND;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (!pid)
		_exit(0);
	if (pid < 0) {
		storm_count_failure();
		return;
	}
	storm_add(&storm_shared->lifetimes, 1);
	storm_reap(pid);
}
