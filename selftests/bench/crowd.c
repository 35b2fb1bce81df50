// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * crowd N COMMAND...: runs the command while N processes exist that only wait.
 */
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void be_one_of_many(void)
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
	/* A group of our own, so that one signal ends the crowd and nobody else. */
	setpgid(0, 0);
	for (long left = atol(argv[1]); left > 0; left--) {
		pid = fork();
		if (!pid)
			be_one_of_many();
		if (pid < 0) {
			perror("crowd: fork");
			return 1;
		}
	}
	pid = fork();
	if (!pid) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return 1;
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
