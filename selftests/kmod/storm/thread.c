// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Threads, and the operations of processes that have more than one. A thread is a bare
 * clone(2) on a small stack: libpthread would spend more time on setting up a thread than
 * the thread lives.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "storm.h"

#define STACK_SIZE 16384
#define BODY_BITS  3 /* of the argument of a thread; the rest is its time in us */

/* The stacks of each worker; its children use their copies. */
static char stacks[STORM_THREADS_MAX][STACK_SIZE] __attribute__((aligned(64)));

static void *body_argument(enum storm_body body, unsigned int us)
{
	return (void *)(long)(body | us << BODY_BITS);
}

/*
 * Runs on a stack of STACK_SIZE without a TLS of its own, while other threads do the same.
 * It may only make system calls, and errno is shared with all of them.
 */
static int thread_main(void *argument)
{
	long body = (long)argument & ((1 << BODY_BITS) - 1), us = (long)argument >> BODY_BITS;

	switch (body) {
	case STORM_BODY_SLEEP:
		storm_sleep_us(us);
		break;
	case STORM_BODY_SPIN:
		storm_spin_us(us);
		break;
	case STORM_BODY_SLEEP_EXEC:
		storm_sleep_us(us);
		/* fall through */
	case STORM_BODY_EXEC:
		storm_exec_tiny();
	case STORM_BODY_PAUSE:
		for (;;)
			pause();
	case STORM_BODY_RENAME:
		prctl(PR_SET_NAME, "renamed-thread");
		break;
	}
	syscall(SYS_exit, 0);
	return 0;
}

int storm_thread_start(unsigned int slot, enum storm_body body, unsigned int us)
{
	int ret = clone(thread_main, stacks[slot] + STACK_SIZE,
			CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
				CLONE_SYSVSEM,
			body_argument(body, us));

	if (ret < 0)
		storm_count_failure();
	else
		storm_add(&storm_shared->threads, 1);
	return ret;
}

pid_t storm_clone_vm(unsigned int slot, enum storm_body body, unsigned int us)
{
	pid_t pid = clone(thread_main, stacks[slot] + STACK_SIZE,
			  CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, body_argument(body, us));

	if (pid > 0)
		storm_add(&storm_shared->lifetimes, 1);
	else
		storm_count_failure();
	return pid;
}

/* The process exits as a whole: threads that still live are killed. */
void storm_thread_many(void)
{
	unsigned int i, n = 1 + storm_random_below(STORM_THREADS_MAX);

	for (i = 0; i < n; i++)
		storm_thread_start(i, storm_random_below(2) ? STORM_BODY_SLEEP : STORM_BODY_EXIT,
				   storm_random_below(1500));
	if (storm_random_below(2))
		storm_sleep_us(storm_random_below(2000));
}

/* The leader exits first, alone; its threads end one by one. */
void storm_thread_dead_leader(void)
{
	unsigned int i, n = 1 + storm_random_below(STORM_THREADS_MAX);

	for (i = 0; i < n; i++)
		storm_thread_start(i, storm_random_below(2) ? STORM_BODY_SPIN : STORM_BODY_SLEEP,
				   100 + storm_random_below(3000));
	syscall(SYS_exit, 0);
}

/* Start up to two threads that pause and one that executes; 0 or -1. */
static int start_executing_thread(enum storm_body body)
{
	unsigned int i, n = storm_random_below(STORM_THREADS_MAX - 1);

	for (i = 1; i <= n; i++)
		storm_thread_start(i, STORM_BODY_PAUSE, 0);
	if (storm_thread_start(0, body, storm_random_below(1500)) < 0)
		return -1;
	storm_add(&storm_shared->execs, 1);
	return 0;
}

/* A thread other than the leader executes, while the leader and others live. */
void storm_thread_exec(void)
{
	if (start_executing_thread(STORM_BODY_EXEC))
		_exit(1);
	for (;;)
		pause();
}

/* A thread executes when the leader has exited already. */
void storm_thread_dead_leader_exec(void)
{
	if (start_executing_thread(STORM_BODY_SLEEP_EXEC))
		_exit(1);
	syscall(SYS_exit, 0);
}
