/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * mwproc: processes of every shape, for tests. Each command prints "ready" when
 * it has taken that shape, and keeps it until it is killed.
 *
 *	sleep		one thread that does nothing
 *	threads N	N more threads
 *	leader		a leader that has exited, and one thread that lives on
 *	zombie		a child that is dead and not waited for; prints its pid
 *	exec PROGRAM..	a thread other than the leader executes PROGRAM
 *	rename NAME	renames itself
 *	thread-rename NAME	a thread other than the leader renames itself
 *	spin		uses the CPU
 *	many N		N children that do nothing
 *	uid UID		becomes somebody else
 *	uring		an io_uring worker of its own reads, in vain; "no io_uring"
 *			and status 4 where there is none
 *	storm N P	N lives in P lines of succession: fork, vfork and threads;
 *			ends by itself
 */
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char **arguments;

static void ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

static void rest(void)
{
	ready();
	for (;;)
		pause();
}

static pthread_t thread(void *(*run)(void *))
{
	pthread_t t;

	if (pthread_create(&t, NULL, run, NULL)) {
		perror("mwproc: thread");
		exit(1);
	}
	return t;
}

static void *sleeps(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void *outlives(void *unused)
{
	(void)unused;
	usleep(50000);
	rest();
	return NULL;
}

static void *executes(void *unused)
{
	(void)unused;
	execvp(arguments[0], arguments);
	perror("mwproc: exec");
	exit(1);
}

static void *renames(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, arguments[0]);
	rest();
	return NULL;
}

static void *ends(void *unused)
{
	return unused;
}

static void zombie(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	usleep(50000);
	printf("%d\n", child);
	rest();
}

static void many(int n)
{
	while (n--)
		if (!fork())
			sleeps(NULL);
	rest();
}

/* One request that has to be waited for by a worker: what a pipe never gives. */
static int uring(void)
{
	struct io_uring_params params = {};
	struct io_uring_sqe *sqe;
	unsigned int *ring;
	static char byte;
	int pipes[2], fd;

	fd = syscall(__NR_io_uring_setup, 1, &params);
	if (fd < 0) {
		printf("no io_uring\n");
		return 4;
	}
	ring = mmap(NULL, params.sq_off.array + sizeof(*ring), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQ_RING);
	sqe = mmap(NULL, sizeof(*sqe), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
		   IORING_OFF_SQES);
	if (ring == MAP_FAILED || sqe == MAP_FAILED || pipe(pipes)) {
		perror("mwproc: uring");
		return 1;
	}
	*sqe = (struct io_uring_sqe){
		.opcode = IORING_OP_READ,
		.flags = IOSQE_ASYNC,
		.fd = pipes[0],
		.addr = (unsigned long)&byte,
		.len = 1,
	};
	ring[params.sq_off.array / sizeof(*ring)] = 0;
	__atomic_store_n(&ring[params.sq_off.tail / sizeof(*ring)], 1, __ATOMIC_RELEASE);
	if (syscall(__NR_io_uring_enter, fd, 1, 0, 0, NULL, 0) != 1) {
		perror("mwproc: io_uring_enter");
		return 1;
	}
	rest();
	return 0;
}

static void live_once(unsigned int i)
{
	pid_t child;

	switch (i % 4) {
	case 0:
		child = vfork();
		if (!child)
			_exit(0);
		break;
	case 1:
		child = fork();
		if (!child) {
			pthread_t t = thread(ends);

			pthread_join(t, NULL);
			_exit(0);
		}
		break;
	case 2:
		child = fork();
		if (!child) {
			thread(ends);
			pthread_exit(NULL);
		}
		break;
	default:
		child = fork();
		if (!child)
			_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void storm(unsigned int lives, unsigned int lines)
{
	unsigned int i, line;

	for (line = 0; line < lines; line++)
		if (!fork()) {
			for (i = line; i < lives; i += lines)
				live_once(i / lines);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int i;

	arguments = argv + 2;
	if (!strcmp(what, "sleep")) {
		rest();
	} else if (!strcmp(what, "threads") && argc == 3) {
		for (i = 0; i < atoi(argv[2]); i++)
			thread(sleeps);
		rest();
	} else if (!strcmp(what, "leader")) {
		thread(outlives);
		pthread_exit(NULL);
	} else if (!strcmp(what, "zombie")) {
		zombie();
	} else if (!strcmp(what, "exec") && argc > 2) {
		thread(executes);
		sleeps(NULL);
	} else if (!strcmp(what, "rename") && argc == 3) {
		renames(NULL);
	} else if (!strcmp(what, "thread-rename") && argc == 3) {
		thread(renames);
		sleeps(NULL);
	} else if (!strcmp(what, "spin")) {
		ready();
		for (;;)
			__asm__ volatile("pause");
	} else if (!strcmp(what, "many") && argc == 3) {
		many(atoi(argv[2]));
	} else if (!strcmp(what, "uid") && argc == 3) {
		if (setresuid(atoi(argv[2]), atoi(argv[2]), atoi(argv[2])))
			return 1;
		rest();
	} else if (!strcmp(what, "uring")) {
		return uring();
	} else if (!strcmp(what, "storm") && argc == 4) {
		storm(atoi(argv[2]), atoi(argv[3]));
		return 0;
	}
	fprintf(stderr, "mwproc: see the head of mwproc.c\n");
	return 2;
}
