// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The child waits for one byte in a socket, whose writer gets no SIGPIPE if the child was killed,
 * before it executes the command. A pipe, which exec closes, brings back the error if exec fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child.h"
#include "common/interrupt.h"
#include "common/message.h"

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

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, release))
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

	if (mw_interrupted())
		return -EINTR;
	/* Ctrl-C kills the child, too, and only the child if it comes now. */
	if (send(child->release, "g", 1, MSG_NOSIGNAL) != 1)
		return errno == EPIPE || errno == ECONNRESET ? -EINTR : -errno;
	/* exec closes the child's end of the pipe, so end of file means that it succeeded. */
	do {
		n = read(child->failure, &err, sizeof(err));
	} while (n < 0 && errno == EINTR);
	if (n == sizeof(err))
		return -err;
	child->started = true;
	return 0;
}

int mw_child_failed(int err, const char *command)
{
	if (err == -EINTR)
		return mw_error(MW_EXIT_FAILED, command, "was not started: a signal came before");
	/* Whatever the reason is, it is the command's and not one of this machine. */
	return mw_error(MW_EXIT_FAILED, command, "%s", strerror(-err));
}

void mw_child_pass_signals(struct mw_child *child)
{
	child->has_signals = true;
	mw_interrupt_pass_on(child->pid);
}

/* Returns whether the child has ended. It is reaped later, because its pid is needed till then. */
static bool has_ended(const struct mw_child *child, int flags)
{
	siginfo_t info = { 0 };
	int err;

	do {
		err = waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOWAIT | flags);
	} while (err && errno == EINTR);
	return err || info.si_pid;
}

/* Whether /proc has the numbers that this process knows: it may be that of another namespace. */
static bool proc_is_own(void)
{
	char self[16], number[16];
	ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0';
	snprintf(number, sizeof(number), "%d", (int)getpid());
	return !strcmp(self, number);
}

/* The process has ended and was not reaped, so that it still has its number. */
static void read_comm(struct mw_child *child)
{
	char path[32];
	ssize_t n;
	int fd;

	if (!proc_is_own())
		return;
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)child->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	/* The name, of 15 bytes at most, and a newline. */
	n = read(fd, child->comm, sizeof(child->comm));
	child->comm[n > 0 ? n - 1 : 0] = '\0';
	close(fd);
}

static bool child_reap(struct mw_child *child, int flags)
{
	if (!child->pid || child->ended || !has_ended(child, flags))
		return child->ended;
	if (child->has_signals)
		mw_interrupt_pass_on(0);
	read_comm(child);
	while (waitpid(child->pid, &child->status, 0) < 0 && errno == EINTR)
		;
	child->ended = true;
	return true;
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
