/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What tests of the growth monitor have in common: the monitor, and children
 * that do something to be seen by it. A test includes it once.
 */
#ifndef GROWTH_RIG_H
#define GROWTH_RIG_H

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <memwatch/watch.h>

#include "../tap.h"

#define MIB (1UL << 20)

static struct memwatch_ctx *ctx;
static struct memwatch_watch *watch;

struct child {
	pid_t pid;
	int go[2], done[2];
};

/* First of all, in main(). */
static inline void start_rig(void)
{
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };

	tap_start();
	if (geteuid())
		tap_skip_all("needs root");
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		tap_skip_all("this kernel has no BTF");
	setrlimit(RLIMIT_MEMLOCK, &unlimited); /* before 5.11 maps are charged to it */
	signal(SIGPIPE, SIG_IGN);
	if (memwatch_ctx_new(NULL, &ctx))
		exit(EXIT_FAILURE);
}

static inline void tell(int fd)
{
	if (write(fd, "x", 1) != 1)
		_exit(1);
}

static inline void await(int fd)
{
	char c;

	while (read(fd, &c, 1) < 0 && errno == EINTR)
		;
}

/* Starts @fn in a child; it tells @done and awaits @go as it likes. */
static inline struct child start(void (*fn)(struct child *c))
{
	struct child c;

	if (pipe(c.go) || pipe(c.done))
		exit(EXIT_FAILURE);
	c.pid = fork();
	if (!c.pid) {
		/* Without its parent a child has nobody to be told by. */
		close(c.go[1]);
		close(c.done[0]);
		fn(&c);
		_exit(0);
	}
	close(c.go[0]);
	close(c.done[1]);
	return c;
}

static inline void finish(struct child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->go[1]);
	close(c->done[0]);
}

static inline uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline void drain(void)
{
	const struct memwatch_record_header *record;

	while (memwatch_watch_next(watch, &record) == 1)
		;
}

/* At least one whole round that begins now. */
static inline void rounds(int n)
{
	uint64_t end = now() + 20000000000ULL;

	for (n++; n && now() < end;) {
		int bits = memwatch_watch_poll(watch, 1000);

		if (bits & MEMWATCH_WATCH_EVENT)
			drain();
		n -= !!(bits & MEMWATCH_WATCH_ROUND);
	}
}

/* The row of a process: how many there are of it. */
static inline int find(pid_t pid, struct memwatch_growth_row *row,
		       struct memwatch_growth_sample *sample)
{
	struct memwatch_growth_sample s;
	int count = 0;

	memwatch_watch_snapshot(watch);
	for (unsigned int i = 0; memwatch_watch_sample(watch, i, &s, NULL); i++) {
		if (s.tgid != (uint32_t)pid)
			continue;
		count++;
		if (sample)
			*sample = s;
		row->sz = sizeof(*row);
		memwatch_watch_row(watch, i, row);
	}
	return count;
}

static inline char *touch(size_t bytes, int flags)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(1);
	memset(p, 1, bytes);
	return p;
}

static inline uint64_t proc_kb(pid_t pid, const char *key)
{
	char path[64], line[256];
	uint64_t value = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)))
			value = strtoull(line + strlen(key), NULL, 10);
	if (file)
		fclose(file);
	return value;
}

static inline bool is_near(uint64_t bytes, uint64_t kb)
{
	uint64_t slack = 2048 + (uint64_t)sysconf(_SC_NPROCESSORS_CONF) * 512;

	return bytes / 1024 < kb + slack && kb < bytes / 1024 + slack;
}

static inline bool has_swap(void)
{
	FILE *file = fopen("/proc/swaps", "r");
	char line[256];
	int lines = 0;

	while (file && fgets(line, sizeof(line), file))
		lines++;
	if (file)
		fclose(file);
	return lines > 1;
}

static inline void leak_to_limit(struct child *c)
{
	struct rlimit limit = { 400 * MIB, 400 * MIB };

	setrlimit(RLIMIT_DATA, &limit);
	tell(c->done[1]);
	/* The start is over when the leak begins. */
	sleep(12);
	for (;;) {
		void *p = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

		if (p == MAP_FAILED)
			break;
		memset(p, 1, 2 * MIB);
		usleep(100000);
	}
	tell(c->done[1]);
	await(c->go[0]);
}

static inline struct memwatch_watch *open_watch(uint32_t max, uint64_t period_ns)
{
	MEMWATCH_OPTS(memwatch_watch_opts, opts, .max_processes = max, .period_ns = period_ns,
		      .rest_ppm = 500000, .storm_ppm = 500000);
	struct memwatch_watch *w = NULL;
	int err = memwatch_watch_open(ctx, &opts, &w);

	if (err) {
		printf("Bail out! the monitor does not open: %s\n", memwatch_ctx_error(ctx));
		exit(EXIT_FAILURE);
	}
	return w;
}

#endif
