// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * crowd N COMMAND...: runs the command while N processes exist that do nothing.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void wait_for_signal(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	if (argc < 3) {
		fprintf(stderr, "usage: crowd N COMMAND...\n");
		return 2;
	}
	/* A process group of our own, so that one signal ends all of them and nothing else. */
	setpgid(0, 0);
	for (long left = atol(argv[1]); left > 0; left--) {
		pid = fork();
		if (!pid)
			wait_for_signal();
		if (pid < 0) {
			perror("crowd: fork");
			return 1;
		}
	}
	pid = fork();
	if (!pid) {
		execvp(argv[2], argv + 2);
		fprintf(stderr, "crowd: cannot execute %s: %s\n", argv[2], strerror(errno));
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return 1;
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
