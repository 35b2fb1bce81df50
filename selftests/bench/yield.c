// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * yield threads|processes N: two threads of one process, or two processes, share CPU 0
 * and yield it to each other N times. Nearly all context switches of the machine are then
 * of one kind: between threads the owner of the RMID stays the same, between processes it
 * changes.
 *
 * yield wakeups N: two processes, one on CPU 0 and one on CPU 1, wake each other N times. Both CPUs
 * switch between a process and the idle task all the time.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static long yields;

static void *yield_many(void *arg)
{
	for (long i = 0; i < yields; i++)
		sched_yield();
	return arg;
}

static int use_cpu(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one);
}

/* Passes @n bytes on. Returns 0, or 1 if the other process has ended. */
static int pass_many(long n, int from, int to)
{
	char byte;

	for (long i = 0; i < n; i++)
		if (read(from, &byte, 1) != 1 || write(to, &byte, 1) != 1)
			return 1;
	return 0;
}

static int run_wakeups(long n)
{
	int there[2], back[2], ret;
	pid_t pid;

	if (pipe(there) || pipe(back))
		return 1;
	pid = fork();
	if (!pid)
		_exit(use_cpu(1) || pass_many(n, there[0], back[1]));
	ret = use_cpu(0) || write(there[1], "", 1) != 1 || pass_many(n, back[0], there[1]);
	return pid < 0 || waitpid(pid, NULL, 0) != pid || ret;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	pid_t pid;

	if (argc != 3) {
		fprintf(stderr, "usage: yield threads|processes|wakeups N\n");
		return 2;
	}
	yields = atol(argv[2]);
	if (!strcmp(argv[1], "wakeups"))
		return run_wakeups(yields);
	if (use_cpu(0))
		return 1;
	if (!strcmp(argv[1], "threads")) {
		if (pthread_create(&thread, NULL, yield_many, NULL))
			return 1;
		yield_many(NULL);
		pthread_join(thread, NULL);
		return 0;
	}
	pid = fork();
	yield_many(NULL);
	if (!pid)
		_exit(0);
	return pid < 0 || waitpid(pid, NULL, 0) != pid;
}
