/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * mwproc: processes of every kind, for tests. Each command prints "ready" when the process
 * is as described, and stays so until it is killed.
 *
 *	sleep		one thread that does nothing
 *	threads N	N threads besides the leader
 *	leader		a leader that has exited, and one thread that lives
 *	zombie		a child that is a zombie; prints its pid
 *	exec PROGRAM..	a thread other than the leader executes PROGRAM
 *	rename NAME	renames itself
 *	thread-rename NAME	a thread other than the leader renames itself
 *	spin		uses the CPU
 *	many N		N children that do nothing
 *	uid UID		changes its user id
 *	uring		an io_uring worker waits in a read; prints "no io_uring" and exits
 *			with 4 if the kernel has none
 *	vhost		a vhost worker is the only thread left; prints "no vhost" and exits
 *			with 4 if the kernel has no vhost, or none whose workers are threads
 *			of the process
 *	storm N P	N children, one after the other in each of P processes: with fork,
 *			vfork and threads; exits when they have ended
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/vhost.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char **arguments; /* of the command, after its name */

static void print_ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

static void pause_ready(void)
{
	print_ready();
	for (;;)
		pause();
}

static pthread_t start_thread(void *(*body)(void *))
{
	pthread_t t;

	if (pthread_create(&t, NULL, body, NULL)) {
		perror("mwproc: cannot start a thread");
		exit(1);
	}
	return t;
}

static void *thread_sleep(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void *thread_outlive(void *unused)
{
	(void)unused;
	usleep(50000);
	pause_ready();
	return NULL;
}

static void *thread_exec(void *unused)
{
	(void)unused;
	execvp(arguments[0], arguments);
	perror("mwproc: cannot execute");
	exit(1);
}

static void *thread_rename(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, arguments[0]);
	pause_ready();
	return NULL;
}

static void *thread_end(void *unused)
{
	return unused;
}

static void make_zombie(void)
{
	pid_t child = fork();
	siginfo_t info;

	if (!child)
		_exit(0);
	waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
	printf("%d\n", child);
	pause_ready();
}

static void make_children(int n)
{
	while (n--)
		if (!fork())
			thread_sleep(NULL);
	pause_ready();
}

/* One request that a worker has to wait for: a read from a pipe that stays empty. */
static int wait_in_uring(void)
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
	pause_ready();
	return 0;
}

static int count_threads(void)
{
	char line[128];
	int n = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "Threads: %d", &n);
	if (f)
		fclose(f);
	return n;
}

/* The leader exits, but not its worker, because a child keeps /dev/vhost-net open. */
static int leave_vhost_worker(void)
{
	int fd = open("/dev/vhost-net", O_RDWR);

	if (fd < 0 || ioctl(fd, VHOST_SET_OWNER) || count_threads() < 2) {
		printf("no vhost\n");
		return 4;
	}
	if (!fork())
		for (;;)
			pause();
	print_ready();
	syscall(SYS_exit, 0);
	return 1;
}

static void run_child(unsigned int i)
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
			pthread_t t = start_thread(thread_end);

			pthread_join(t, NULL);
			_exit(0);
		}
		break;
	case 2:
		child = fork();
		if (!child) {
			start_thread(thread_end);
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

static void run_children(unsigned int children, unsigned int processes)
{
	unsigned int i, process;

	for (process = 0; process < processes; process++)
		if (!fork()) {
			for (i = process; i < children; i += processes)
				run_child(i / processes);
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
		pause_ready();
	} else if (!strcmp(what, "threads") && argc == 3) {
		for (i = 0; i < atoi(argv[2]); i++)
			start_thread(thread_sleep);
		pause_ready();
	} else if (!strcmp(what, "leader")) {
		start_thread(thread_outlive);
		pthread_exit(NULL);
	} else if (!strcmp(what, "zombie")) {
		make_zombie();
	} else if (!strcmp(what, "exec") && argc > 2) {
		start_thread(thread_exec);
		thread_sleep(NULL);
	} else if (!strcmp(what, "rename") && argc == 3) {
		thread_rename(NULL);
	} else if (!strcmp(what, "thread-rename") && argc == 3) {
		start_thread(thread_rename);
		thread_sleep(NULL);
	} else if (!strcmp(what, "spin")) {
		print_ready();
		for (;;)
			__asm__ volatile("pause");
	} else if (!strcmp(what, "many") && argc == 3) {
		make_children(atoi(argv[2]));
	} else if (!strcmp(what, "uid") && argc == 3) {
		if (setresuid(atoi(argv[2]), atoi(argv[2]), atoi(argv[2])))
			return 1;
		pause_ready();
	} else if (!strcmp(what, "uring")) {
		return wait_in_uring();
	} else if (!strcmp(what, "vhost")) {
		return leave_vhost_worker();
	} else if (!strcmp(what, "storm") && argc == 4) {
		run_children(atoi(argv[2]), atoi(argv[3]));
		return 0;
	}
	fprintf(stderr, "mwproc: the commands are listed at the top of mwproc.c\n");
	return 2;
}
