/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Memory that grows in a cgroup but in no process, and what the monitor says about it.
 */
#ifndef GROWTH_GROUPS_H
#define GROWTH_GROUPS_H

#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "growth-children.h"

#define STEPS 24 /* of planted growth, one for each period */

static char filler[MIB];

/* Appends a MiB to a file in memory that no process maps. */
static inline void grow_shmem(int step)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("grows", MFD_CLOEXEC);
	for (int i = 0; i < 2; i++)
		if (write(fd, filler, sizeof(filler)) < 0)
			tap_note("write %d: %s", step, strerror(errno));
}

/* Opens pipes, of which each takes more than a KiB of slab. */
static inline void grow_slab(int step)
{
	int ends[2];

	for (int i = 0; i < 400; i++)
		if (pipe(ends)) {
			tap_note("pipe %d: %s", step, strerror(errno));
			return;
		}
}

/* A listening socket of loopback, which is made ready for that. */
static inline int listen_locally(struct sockaddr_in *name)
{
	struct ifreq loopback = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	socklen_t len = sizeof(*name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*name = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (ioctl(fd, SIOCSIFFLAGS, &loopback) || bind(fd, (struct sockaddr *)name, len) ||
	    listen(fd, 8) || getsockname(fd, (struct sockaddr *)name, &len))
		tap_note("loopback: %s", strerror(errno));
	return fd;
}

/* Opens connections to itself of which nobody reads: each holds some 100 KiB in its buffers. */
static inline void grow_sockets(int step)
{
	static struct sockaddr_in name;
	static int listening = -1;

	if (listening < 0)
		listening = listen_locally(&name);
	for (int i = 0; i < 8; i++) {
		int from = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (connect(from, (struct sockaddr *)&name, sizeof(name)) ||
		    accept(listening, NULL, NULL) < 0) {
			tap_note("connection %d: %s", step, strerror(errno));
			return;
		}
		while (send(from, filler, 65536, MSG_DONTWAIT) > 0)
			;
	}
}

/* The memory of one process. */
static inline void grow_anon(int step)
{
	(void)step;
	map_touched(2 * MIB, MAP_PRIVATE);
}

/* A process with two MiB. Returns when it has them, so that it counts in the next round. */
static inline pid_t start_worker(void)
{
	int ready[2];
	pid_t pid;
	char byte;

	if (pipe(ready))
		return 0;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		map_touched(2 * MIB, MAP_PRIVATE);
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) < 0)
		tap_note("worker: %s", strerror(errno));
	close(ready[0]);
	return pid;
}

/* One more worker; every eighth is replaced at each step. */
static inline void grow_pool(int step)
{
	static pid_t pids[STEPS];

	for (int i = 0; i <= step && i < STEPS; i++) {
		if (i != step && (i + step) % 8)
			continue;
		if (pids[i]) {
			kill(pids[i], SIGKILL);
			waitpid(pids[i], NULL, 0);
		}
		pids[i] = start_worker();
	}
}

/* What the next child does in its cgroup. */
static void (*planned_growth)(int step);
static const char *planned_group;

static inline void grow_in_group(struct child *c)
{
	const struct rlimit files = { 100000, 100000 };
	int fd = open(planned_group, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "0", 1) != 1)
		tap_note("%s: %s", planned_group, strerror(errno));
	close(fd);
	setrlimit(RLIMIT_NOFILE, &files);
	map_touched(4 * MIB, MAP_PRIVATE);
	send_byte(c->done[1]);
	for (int step = 0;; step++) {
		await_byte(c->go[0]);
		planned_growth(step);
		send_byte(c->done[1]);
	}
}

/* Reads the last sample of a cgroup. Returns whether there is one. */
static inline bool find_group(const char *path, struct memwatch_growth_sample *sample)
{
	*sample = (struct memwatch_growth_sample){ .sz = sizeof(*sample) };
	for (unsigned int i = 0; memwatch_watch_get_group_sample(watch, i, sample) == 1; i++)
		if (!strcmp(sample->cgroup, path))
			return true;
	return false;
}

/* The classes of the cgroup for which a notice came, one bit for each. */
static inline unsigned int take_notices(const char *path)
{
	MEMWATCH_OPTS(memwatch_growth_group, group);
	MEMWATCH_OPTS(memwatch_growth_row, row);
	struct memwatch_record_growth record;
	unsigned int classes = 0;

	while (memwatch_watch_next_group(watch, &record, &group, &row) == 1) {
		if (record.what != MEMWATCH_GROWTH_NOTICED)
			continue;
		if (!strcmp(group.path, path))
			classes |= 1U << group.kind;
		else
			tap_note("a notice about %s, class %s", group.path, record.comm);
	}
	return classes;
}

#endif /* GROWTH_GROUPS_H */
