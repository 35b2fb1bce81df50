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
#include <grp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file system of a user may never answer. */
#define TIMEOUT_S 10

struct request {
	uint32_t profile;
	char path[4096];
};

/* What the child knows; see heap_opener_start(). */
struct server {
	struct memwatch_ctx *ctx;
	const char *sysroot;
	const struct heap_owner *owners;
	uint32_t nr;
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

static int open_elf(const struct server *server, const struct memwatch_heap_owner *owner,
		    const char *path)
{
	int fd = owner->pid && !owner->root
			 ? memwatch_heap_open_module(server->ctx, owner->pid, path)
			 : memwatch_heap_open_file(server->ctx, owner, path);

	if (fd < 0 || is_elf(fd))
		return fd;
	close(fd);
	return -1;
}

static int open_module(const struct server *server, const struct heap_owner *of, const char *path)
{
	MEMWATCH_OPTS(memwatch_heap_owner, owner, .pid = of->pid, .uid = of->uid, .gid = of->gid,
		      .root = *server->sysroot ? server->sysroot : NULL);
	size_t prefix = strlen(server->sysroot);
	int fd;

	if (strncmp(path, server->sysroot, prefix))
		return -1;
	path += prefix;
	/* Nobody else can end this process while it waits: its parent has no permission to. */
	alarm(TIMEOUT_S);
	fd = memwatch_heap_open_perf_map(server->ctx, &owner, path);
	if (fd == -EINVAL)
		fd = open_elf(server, &owner, path);
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

static void serve(int socket, const struct server *server)
{
	struct request request;
	bool more = true;

	while (more) {
		ssize_t n = recv(socket, &request, sizeof(request), 0);
		int fd = -1;

		if (n <= (ssize_t)offsetof(struct request, path))
			break;
		if (request.profile < server->nr && !((char *)&request)[n - 1])
			fd = open_module(server, &server->owners[request.profile], request.path);
		more = send_answer(socket, fd);
		if (fd >= 0)
			close(fd);
	}
}

/* ------------------------------------------------------------- in the parent */

int heap_opener_start(struct heap_opener *opener, struct memwatch_ctx *ctx, const char *sysroot,
		      const struct heap_owner *owners, uint32_t nr)
{
	const struct server server = { ctx, sysroot ?: "", owners, nr };
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
			serve(ends[1], &server);
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
