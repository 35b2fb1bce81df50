// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * yield threads|processes N: two threads of one process, or two processes, share CPU 0
 * and yield it to each other N times. Nearly all context switches of the machine are then
 * of one kind: between threads the owner of the RMID stays the same, between processes it
 * changes.
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

int main(int argc, char **argv)
{
	cpu_set_t one;
	pthread_t thread;
	pid_t pid;

	if (argc != 3) {
		fprintf(stderr, "usage: yield threads|processes N\n");
		return 2;
	}
	yields = atol(argv[2]);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
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
