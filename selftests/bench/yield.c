// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * yield threads|processes N: two of them share CPU 0 and hand it to each other
 * N times, so that nearly all context switches of the machine are of one kind:
 * the owner stays the same, or it changes.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static long count;

static void *yield(void *arg)
{
	for (long i = 0; i < count; i++)
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
	count = atol(argv[2]);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		return 1;
	if (!strcmp(argv[1], "threads")) {
		if (pthread_create(&thread, NULL, yield, NULL))
			return 1;
		yield(NULL);
		pthread_join(thread, NULL);
		return 0;
	}
	pid = fork();
	yield(NULL);
	if (!pid)
		_exit(0);
	return pid < 0 || waitpid(pid, NULL, 0) != pid;
}
