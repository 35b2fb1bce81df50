// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Opens programs and libraries for a process that has become nobody, and so may not open what lies
 * in a folder of root. A request is a message with the number of a profile and a path, and the
 * answer is a message of one byte, with a descriptor if the file could be opened.
 */
#include "cmds/heap/opener.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A file system of a user may never answer. */
#define TIMEOUT_S 10

struct request {
	uint32_t profile;
	char path[4096];
};

union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* ------------------------------------------------------------- in the child */

static bool is_elf(int fd)
{
	char magic[SELFMAG];
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && pread(fd, magic, SELFMAG, 0) == SELFMAG &&
	       !memcmp(magic, ELFMAG, SELFMAG);
}

/* @root: a process in whose root directory the file is, also by symbolic links, or 0. */
static int open_below(uint32_t root, const char *path)
{
	/* A FIFO must not block, and a terminal not become that of this process. */
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
				.resolve = RESOLVE_IN_ROOT };
	char name[32];
	int fd, at;

	if (!root)
		return open(path, (int)how.flags);
	snprintf(name, sizeof(name), "/proc/%u/root", root);
	at = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = (int)syscall(SYS_openat2, at, path, &how, sizeof(how));
	if (at >= 0)
		close(at);
	return fd;
}

/* Opens a file as the owner of the profile would. */
static int open_as_owner(const struct heap_owner *owner, uint32_t root, const char *path)
{
	int fd;

	/* These calls do not fail for root; and if they did, the file would belong to root. */
	setfsgid(owner->gid);
	setfsuid(owner->uid);
	fd = open_below(root, path);
	setfsuid(0);
	setfsgid(0);
	return fd;
}

/* Whether it is the path of what runtimes write for perf. */
static bool is_perf_map_path(const char *path)
{
	const char *name = strrchr(path, '/');
	int end = 0;

	return name && sscanf(name, "/perf-%*[0-9].map%n", &end) >= 0 && end && !name[end];
}

/* A process sees /tmp of its container; what is below another directory, the caller has named. */
static int open_perf_map(const struct heap_owner *owner, const char *path)
{
	bool is_own = !strncmp(path, P_tmpdir "/perf-", sizeof(P_tmpdir "/perf-") - 1);
	int fd = open_as_owner(owner, is_own ? owner->pid : 0, path);
	struct stat st;

	if (fd < 0 || (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == owner->uid))
		return fd;
	close(fd);
	return -1;
}

static int open_elf(struct memwatch_ctx *ctx, const struct heap_owner *owner, const char *path)
{
	int fd = owner->pid ? memwatch_heap_open_module(ctx, owner->pid, path)
			    : open_as_owner(owner, 0, path);

	if (fd < 0 || is_elf(fd))
		return fd;
	close(fd);
	return -1;
}

static int open_module(struct memwatch_ctx *ctx, const struct heap_owner *owner, const char *path)
{
	int fd;

	/* Nobody else can end this process while it waits: its parent has no permission to. */
	alarm(TIMEOUT_S);
	fd = is_perf_map_path(path) ? open_perf_map(owner, path) : open_elf(ctx, owner, path);
	alarm(0);
	return fd;
}

static bool send_answer(int socket, int fd)
{
	union control control = { .bytes = "" };
	struct iovec byte = { .iov_base = (char[]){ 0 }, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &byte, .msg_iovlen = 1 };

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

static void serve(int socket, struct memwatch_ctx *ctx, const struct heap_owner *owners,
		  uint32_t nr)
{
	struct request request;
	bool more = true;

	while (more) {
		ssize_t n = recv(socket, &request, sizeof(request), 0);
		int fd = -1;

		if (n <= (ssize_t)offsetof(struct request, path))
			break;
		if (request.profile < nr && !((char *)&request)[n - 1])
			fd = open_module(ctx, &owners[request.profile], request.path);
		more = send_answer(socket, fd);
		if (fd >= 0)
			close(fd);
	}
}

/* ------------------------------------------------------------- in the parent */

int heap_opener_start(struct heap_opener *opener, struct memwatch_ctx *ctx,
		      const struct heap_owner *owners, uint32_t nr)
{
	int ends[2];
	pid_t pid;

	opener->socket = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	pid = fork();
	if (pid < 0) {
		int err = -errno;

		close(ends[0]);
		close(ends[1]);
		return err;
	}
	if (!pid) {
		close(ends[0]);
		if (!setgroups(0, NULL))
			serve(ends[1], ctx, owners, nr);
		_exit(0);
	}
	close(ends[1]);
	opener->socket = ends[0];
	return 0;
}

void heap_opener_stop(struct heap_opener *opener)
{
	if (opener->socket >= 0)
		close(opener->socket);
	opener->socket = -1;
}

static int receive_answer(int socket)
{
	union control control;
	struct iovec byte = { .iov_base = (char[1]){ 0 }, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &byte,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	struct pollfd ready = { .fd = socket, .events = POLLIN };
	struct cmsghdr *head;
	int fd = -1;

	if (poll(&ready, 1, TIMEOUT_S * 1000) != 1 ||
	    recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1)
		return -ETIMEDOUT;
	head = CMSG_FIRSTHDR(&message);
	if (head && head->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return fd;
}

int heap_opener_open(void *data, uint32_t profile, const char *path)
{
	struct heap_opener *opener = data;
	struct request request = { .profile = profile };
	size_t len = strlen(path) + 1;
	int fd;

	if (opener->socket < 0 || len > sizeof(request.path))
		return -1;
	memcpy(request.path, path, len);
	len += offsetof(struct request, path);
	fd = send(opener->socket, &request, len, MSG_NOSIGNAL) == (ssize_t)len
		     ? receive_answer(opener->socket)
		     : -ETIMEDOUT;
	if (fd == -ETIMEDOUT)
		heap_opener_stop(opener);
	return fd;
}
