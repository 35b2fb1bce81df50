// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * crowd [-t] N COMMAND...: runs the command while N processes, or with -t N threads of one
 * process, exist that do nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES 4096

static _Noreturn void wait_for_signal(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static bool start_processes(long count)
{
	for (; count > 0; count--) {
		pid_t pid = fork();

		if (!pid)
			wait_for_signal();
		if (pid < 0)
			return false;
	}
	return true;
}

static int run_thread(void *unused)
{
	(void)unused;
	wait_for_signal();
}

/* By clone(), because 100 000 stacks of pthread_create() are more mappings than allowed. */
static bool start_threads(long count)
{
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
	char *stacks = mmap(NULL, (size_t)count * STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (stacks == MAP_FAILED)
		return false;
	for (long i = 1; i <= count; i++)
		if (clone(run_thread, stacks + i * STACK_BYTES, flags, NULL) < 0)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	bool threads = argc > 1 && !strcmp(argv[1], "-t");
	char **args = argv + 1 + threads;
	int status;
	pid_t pid;

	if (argc < 3 + threads) {
		fprintf(stderr, "usage: crowd [-t] N COMMAND...\n");
		return 2;
	}
	/* A process group of our own, so that one signal ends all of them and nothing else. */
	setpgid(0, 0);
	if (!(threads ? start_threads(atol(args[0])) : start_processes(atol(args[0])))) {
		perror("crowd");
		return 1;
	}
	pid = fork();
	if (!pid) {
		execvp(args[1], args + 1);
		fprintf(stderr, "crowd: cannot execute %s: %s\n", args[1], strerror(errno));
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return 1;
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
