// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The child waits for one byte in a pipe before it executes the command. A second
 * pipe, which exec closes, brings back the error if exec fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child.h"

/* What the child does after the fork. Does not return. */
static void child_exec(const int *release, const int *failure, char **argv)
{
	char go;
	int err;

	close(release[1]);
	close(failure[0]);
	/* End of file: the parent could not start the recording. */
	if (read(release[0], &go, 1) != 1)
		_exit(0);
	execvp(argv[0], argv);
	err = errno;
	if (write(failure[1], &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(127);
}

int mw_child_fork(struct mw_child *child, char **argv)
{
	int release[2], failure[2], err;
	pid_t pid;

	if (pipe2(release, O_CLOEXEC))
		return -errno;
	if (pipe2(failure, O_CLOEXEC)) {
		err = -errno;
		close(release[0]);
		close(release[1]);
		return err;
	}
	pid = fork();
	if (!pid)
		child_exec(release, failure, argv);
	err = pid < 0 ? -errno : 0;
	close(release[0]);
	close(failure[1]);
	if (err) {
		close(release[1]);
		close(failure[0]);
		return err;
	}
	*child = (struct mw_child){ .pid = pid, .release = release[1], .failure = failure[0] };
	return 0;
}

int mw_child_start(struct mw_child *child)
{
	int err = 0;
	ssize_t n;

	if (write(child->release, "g", 1) != 1)
		return -errno;
	/* exec closes the child's end of the pipe, so end of file means that it succeeded. */
	do {
		n = read(child->failure, &err, sizeof(err));
	} while (n < 0 && errno == EINTR);
	if (n == sizeof(err))
		return -err;
	child->started = true;
	return 0;
}

static bool child_reap(struct mw_child *child, int flags)
{
	pid_t pid;

	if (!child->pid || child->ended)
		return child->ended;
	do {
		pid = waitpid(child->pid, &child->status, flags);
	} while (pid < 0 && errno == EINTR);
	child->ended = pid != 0;
	return child->ended;
}

bool mw_child_poll(struct mw_child *child)
{
	return child_reap(child, WNOHANG);
}

void mw_child_wait(struct mw_child *child)
{
	child_reap(child, 0);
}

void mw_child_uninit(struct mw_child *child)
{
	if (!child->pid)
		return;
	/* A child that was not started reads end of file and exits. */
	close(child->release);
	close(child->failure);
	mw_child_wait(child);
}

const char *mw_child_status_text(const struct mw_child *child, char *buf, size_t size)
{
	if (WIFSIGNALED(child->status))
		snprintf(buf, size, "was killed by signal %d (%s)", WTERMSIG(child->status),
			 strsignal(WTERMSIG(child->status)));
	else
		snprintf(buf, size, "exited with status %d", WEXITSTATUS(child->status));
	return buf;
}
