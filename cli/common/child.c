// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Running a command under a recording.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child.h"

static void child(const int *release, const int *failure, char **argv)
{
	char go;
	int err;

	close(release[1]);
	close(failure[0]);
	if (read(release[0], &go, 1) != 1)
		_exit(0); /* the recording could not be started */
	execvp(argv[0], argv);
	err = errno;
	if (write(failure[1], &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(127);
}

int mw_command_fork(struct mw_command *command, char **argv)
{
	int release[2], failure[2];
	pid_t pid;

	if (pipe2(release, O_CLOEXEC))
		return -errno;
	if (pipe2(failure, O_CLOEXEC)) {
		close(release[0]);
		close(release[1]);
		return -errno;
	}
	pid = fork();
	if (!pid)
		child(release, failure, argv);
	close(release[0]);
	close(failure[1]);
	*command = (struct mw_command){ .pid = pid, .release = release[1], .failure = failure[0] };
	if (pid > 0)
		return 0;
	close(release[1]);
	close(failure[0]);
	command->pid = 0;
	return -errno;
}

int mw_command_start(struct mw_command *command)
{
	int err = 0;
	ssize_t n;

	if (write(command->release, "g", 1) != 1)
		return -errno;
	/* The pipe closes when the exec succeeds. */
	do {
		n = read(command->failure, &err, sizeof(err));
	} while (n < 0 && errno == EINTR);
	if (n == sizeof(err))
		return -err;
	command->started = true;
	return 0;
}

static bool reap(struct mw_command *command, int flags)
{
	pid_t pid;

	if (!command->pid || command->ended)
		return command->ended;
	do {
		pid = waitpid(command->pid, &command->status, flags);
	} while (pid < 0 && errno == EINTR);
	command->ended = pid != 0;
	return command->ended;
}

bool mw_command_poll(struct mw_command *command)
{
	return reap(command, WNOHANG);
}

void mw_command_wait(struct mw_command *command)
{
	reap(command, 0);
}

void mw_command_uninit(struct mw_command *command)
{
	if (!command->pid)
		return;
	/* A child that was not released ends by itself when the pipe closes. */
	close(command->release);
	close(command->failure);
	mw_command_wait(command);
}

const char *mw_command_words(const struct mw_command *command, char *buf, size_t size)
{
	if (WIFSIGNALED(command->status))
		snprintf(buf, size, "was killed by signal %d (%s)", WTERMSIG(command->status),
			 strsignal(WTERMSIG(command->status)));
	else
		snprintf(buf, size, "exited with status %d", WEXITSTATUS(command->status));
	return buf;
}
