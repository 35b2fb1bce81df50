// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (C) 2026 The memwatch authors
/*
 * Grows where no process does, or uses the same kind of memory without growing:
 *
 *	group KIND KIB_PER_SECOND AFTER [BOUND_KIB]
 *
 * KIND   tmpfs  appends to a file in the current folder, which is on a tmpfs
 *        sock   sends through TCP connections whose other ends do not read
 *        slab   opens pipes
 *        pool   eight workers, each of which is replaced after about 20 s by one that has
 *               what it had
 *
 * It does not grow before AFTER seconds. With a bound it gives all back when that is reached, and
 * begins again; with a negative one it stays there.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STEP_S	 0.5
#define WORKERS	 8
#define LIFE_S	 20
#define PIPE_KIB 2     /* a pipe, its two files, its inode and its directory entry */
#define BASE_KIB 20480 /* what all workers have together at first */
#define MAX_FDS	 500000

static char block[1 << 16];
static double kib_per_s, after_s, bound_kib;
static int fds[MAX_FDS], nr_fds;

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void nap(void)
{
	const struct timespec time = { 0, (long)(STEP_S * 1e9) };

	nanosleep(&time, NULL);
}

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "group: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* KiB that there should be after some seconds. */
static double wanted_kib(double seconds)
{
	double kib = seconds > after_s ? (seconds - after_s) * kib_per_s : 0;

	if (bound_kib < 0)
		return kib < -bound_kib ? kib : -bound_kib;
	return bound_kib > 0 ? kib - bound_kib * (double)(long)(kib / bound_kib) : kib;
}

static void close_all(void)
{
	while (nr_fds)
		close(fds[--nr_fds]);
}

static double fill_tmpfs(double have, double want)
{
	static int fd = -1;

	if (fd < 0)
		fd = open("grows", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		die("grows");
	if (want < have) {
		if (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET))
			die("truncate");
		return 0;
	}
	for (; have + 64 <= want; have += 64)
		if (write(fd, block, sizeof(block)) != sizeof(block))
			die("write");
	return have;
}

/* Opens a connection to this program itself. */
static int connect_pair(void)
{
	static int listener = -1;
	static struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);
	int from, to;

	if (listener < 0) {
		address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		listener = socket(AF_INET, SOCK_STREAM, 0);
		if (bind(listener, (struct sockaddr *)&address, sizeof(address)) ||
		    listen(listener, 16) ||
		    getsockname(listener, (struct sockaddr *)&address, &size))
			die("listen");
	}
	from = socket(AF_INET, SOCK_STREAM, 0);
	if (from < 0 || connect(from, (struct sockaddr *)&address, sizeof(address)))
		die("connect");
	to = accept(listener, NULL, NULL);
	if (to < 0 || nr_fds + 2 > MAX_FDS || fcntl(from, F_SETFL, O_NONBLOCK))
		die("accept");
	fds[nr_fds++] = to;
	fds[nr_fds++] = from;
	return from;
}

static double fill_sockets(double have, double want)
{
	static int fd = -1;

	if (want < have) {
		close_all();
		fd = -1;
		return 0;
	}
	while (have + 64 <= want) {
		ssize_t sent = fd < 0 ? -1 : write(fd, block, sizeof(block));

		if (sent > 0)
			have += (double)sent / 1024;
		else
			fd = connect_pair();
	}
	return have;
}

static double fill_pipes(double have, double want)
{
	if (want < have) {
		close_all();
		return 0;
	}
	for (; have + PIPE_KIB <= want; have += PIPE_KIB) {
		if (nr_fds + 2 > MAX_FDS || pipe(fds + nr_fds))
			die("pipe");
		nr_fds += 2;
	}
	return have;
}

static void touch(double kib)
{
	size_t size = (size_t)kib << 10;
	char *at = size ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0)
			: NULL;

	if (at == MAP_FAILED)
		die("mmap");
	for (size_t i = 0; i < size; i += 4096)
		at[i] = 1;
}

/* A worker has its share from the start on, grows with it, and ends after some time. */
static void __attribute__((noreturn)) work(double start, double life)
{
	double have = 0, end = now_s() + life;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (now_s() < end) {
		double want = (BASE_KIB + wanted_kib(now_s() - start)) / WORKERS;

		if (want < have)
			break;
		touch(want - have);
		have = want;
		nap();
	}
	_exit(0);
}

static void run_pool(double start)
{
	for (unsigned int started = 0;; started++) {
		/* The first ones end at different times. */
		double life = started < WORKERS ? (started + 1.0) * LIFE_S / WORKERS : LIFE_S;
		pid_t pid;

		if (started >= WORKERS)
			wait(NULL);
		pid = fork();
		if (pid < 0)
			die("fork");
		if (!pid)
			work(start, life);
	}
}

int main(int argc, char **argv)
{
	double (*fill)(double have, double want) = NULL, have = 0, start = now_s();
	const struct rlimit files = { MAX_FDS + 100, MAX_FDS + 100 };

	if (argc < 4) {
		fputs("usage: group KIND KIB_PER_SECOND AFTER [BOUND_KIB]\n", stderr);
		return 2;
	}
	kib_per_s = atof(argv[2]);
	after_s = atof(argv[3]);
	bound_kib = argc > 4 ? atof(argv[4]) : 0;
	setrlimit(RLIMIT_NOFILE, &files);
	signal(SIGPIPE, SIG_IGN);
	if (!strcmp(argv[1], "pool"))
		run_pool(start);
	fill = !strcmp(argv[1], "tmpfs")  ? fill_tmpfs
	       : !strcmp(argv[1], "sock") ? fill_sockets
	       : !strcmp(argv[1], "slab") ? fill_pipes
					  : NULL;
	if (!fill)
		return 2;
	for (;; nap())
		have = fill(have, wanted_kib(now_s() - start));
}
