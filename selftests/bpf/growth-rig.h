/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The parts that the tests of the growth monitor share: opening and polling the monitor,
 * and child processes that the monitor watches.
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

/**
 * struct child - a process that does something
 * @pid: its process id
 * @go: pipe from the test to the child, for one byte at each step
 * @done: pipe from the child to the test, for one byte after each step
 */
struct child {
	pid_t pid;
	int go[2], done[2];
};

/* The first call in main(). Skips the test where it cannot run. */
static inline void start_rig(void)
{
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };

	tap_start();
	if (geteuid())
		tap_skip_all("needs root");
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		tap_skip_all("this kernel has no BTF");
	setrlimit(RLIMIT_MEMLOCK, &unlimited); /* up to 5.10, maps are charged to it */
	signal(SIGPIPE, SIG_IGN);
	if (memwatch_ctx_new(NULL, &ctx))
		exit(EXIT_FAILURE);
}

static inline void send_byte(int fd)
{
	if (write(fd, "x", 1) != 1)
		_exit(1);
}

static inline void await_byte(int fd)
{
	char c;

	while (read(fd, &c, 1) < 0 && errno == EINTR)
		;
}

/* Runs @fn in a child process. */
static inline struct child start_child(void (*fn)(struct child *c))
{
	struct child c;

	if (pipe(c.go) || pipe(c.done))
		exit(EXIT_FAILURE);
	c.pid = fork();
	if (!c.pid) {
		/* So that reading from go ends when the test does. */
		close(c.go[1]);
		close(c.done[0]);
		fn(&c);
		_exit(0);
	}
	close(c.go[0]);
	close(c.done[1]);
	return c;
}

static inline void stop_child(struct child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->go[1]);
	close(c->done[0]);
}

#define SECOND 1000000000ULL

static inline uint64_t read_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

static inline uint64_t cpu_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

static inline struct memwatch_watch_stats read_stats(void)
{
	MEMWATCH_OPTS(memwatch_watch_stats, stats);

	memwatch_watch_get_stats(watch, &stats);
	return stats;
}

static inline void drain_records(void)
{
	const struct memwatch_record_header *record;

	while (memwatch_watch_next(watch, &record) == 1)
		;
}

/* Waits for an event of a process. Returns whether it has come. */
static inline bool wait_for_event(pid_t pid, uint32_t what)
{
	const struct memwatch_record_header *header;
	/* A notice ends after a minute. */
	uint64_t end = now_ns() + 100 * SECOND;

	while (now_ns() < end) {
		memwatch_watch_poll(watch, 100);
		while (memwatch_watch_next(watch, &header) == 1) {
			const struct memwatch_record_growth *r = (const void *)header;

			if (header->type == MEMWATCH_RECORD_GROWTH && r->tgid == (uint32_t)pid &&
			    r->what == what)
				return true;
		}
	}
	return false;
}

/* Runs at least @n whole rounds that begin now, for at most 20 s. */
static inline void run_rounds(int n)
{
	uint64_t end = now_ns() + 20 * SECOND;

	for (n++; n && now_ns() < end;) {
		int bits = memwatch_watch_poll(watch, 1000);

		if (bits & MEMWATCH_WATCH_EVENT)
			drain_records();
		n -= !!(bits & MEMWATCH_WATCH_ROUND);
	}
}

/* Runs rounds for at least @ns, however many of them other growth on the machine requests. */
static inline void run_rounds_for(uint64_t ns)
{
	uint64_t end = now_ns() + ns;

	do
		run_rounds(0);
	while (now_ns() < end);
}

/* Gets row and sample (or NULL) of a process. Returns how many processes have this id. */
static inline int find_process(pid_t pid, struct memwatch_growth_row *row,
			       struct memwatch_growth_sample *sample)
{
	MEMWATCH_OPTS(memwatch_growth_sample, s);
	int count = 0;

	memwatch_watch_snapshot(watch);
	for (unsigned int i = 0; memwatch_watch_get_sample(watch, i, &s, NULL); i++) {
		if (s.tgid != (uint32_t)pid)
			continue;
		count++;
		if (sample)
			*sample = s;
		row->sz = sizeof(*row);
		memwatch_watch_get_row(watch, i, row);
	}
	return count;
}

/* Maps memory and writes to all of it. */
static inline char *map_touched(size_t bytes, int flags)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(1);
	memset(p, 1, bytes);
	return p;
}

/* A value of /proc/PID/status, in KiB. */
static inline uint64_t read_proc_kb(pid_t pid, const char *key)
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

/* Are both equal, but for what each CPU holds back and what changed meanwhile? */
static inline bool is_near_kb(uint64_t bytes, uint64_t kb)
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

/* Opens the monitor for @max processes, with a budget that does not slow it down. */
static inline struct memwatch_watch *open_watch_with(uint32_t flags, uint32_t max,
						     uint64_t period_ns)
{
	MEMWATCH_OPTS(memwatch_watch_opts, opts, .flags = flags, .max_processes = max,
		      .period_ns = period_ns, .rest_ppm = 500000, .storm_ppm = 500000);
	struct memwatch_watch *w = NULL;
	int err = memwatch_watch_open(ctx, &opts, &w);

	if (err) {
		printf("Bail out! the monitor cannot be opened: %s\n", memwatch_ctx_error(ctx));
		exit(EXIT_FAILURE);
	}
	return w;
}

static inline struct memwatch_watch *open_watch(uint32_t max, uint64_t period_ns)
{
	return open_watch_with(0, max, period_ns);
}

#endif /* GROWTH_RIG_H */
