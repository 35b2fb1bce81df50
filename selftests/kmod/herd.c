/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * herd UID N KIND [MS]: N processes of user UID, to see who gets RMIDs when there are too
 * few. Prints the pids of those that live on, then "ready"; ends when it is killed, and all
 * its processes with it. The kinds are
 *
 *	sleep		does nothing
 *	wake		runs for a moment every MS milliseconds
 *	spin		uses the CPU
 *	strangers	uses the CPU, in a user namespace of UID in which each of the processes
 *			has a user id of its own
 *	storm		creates children that run for MS milliseconds, one after the other
 *	jobs		like storm, but rests for MS milliseconds after each child
 *	threads		one process with N threads that sleep
 *	forks		creates N children that end at once, one after the other; prints the
 *			median, the 99th percentile and the maximum of the times in ns, and ends
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long milliseconds;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void rest(void)
{
	nanosleep(&(struct timespec){ milliseconds / 1000, milliseconds % 1000 * 1000000 }, NULL);
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void run_job(void)
{
	long end = now_ms() + milliseconds;
	pid_t pid = fork();

	if (pid < 0)
		fail("herd: fork");
	if (pid) {
		waitpid(pid, NULL, 0);
		return;
	}
	while (now_ms() < end)
		;
	_exit(0);
}

/* A parent that was killed before this process had run for the first time sends no signal. */
static void end_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
}

static void live(const char *kind)
{
	for (;;) {
		if (!strcmp(kind, "sleep"))
			pause();
		else if (!strcmp(kind, "wake"))
			rest();
		else if (!strcmp(kind, "storm") || !strcmp(kind, "jobs"))
			run_job();
		if (!strcmp(kind, "jobs"))
			rest();
	}
}

static void *sleep_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void make_threads(long n)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16384);
	pthread_attr_setguardsize(&attr, 0);
	for (; n; n--)
		if (pthread_create(&thread, &attr, sleep_for_ever, NULL))
			fail("herd: pthread_create");
}

static int compare_longs(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

static void time_forks(long n)
{
	long *times = calloc(n, sizeof(*times));
	struct timespec begin, end;

	if (!times || !n)
		fail("herd: forks");
	for (long i = 0; i < n; i++) {
		clock_gettime(CLOCK_MONOTONIC, &begin);
		pid_t pid = vfork();

		if (pid < 0)
			fail("herd: vfork");
		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
		clock_gettime(CLOCK_MONOTONIC, &end);
		times[i] = (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec;
	}
	qsort(times, n, sizeof(*times), compare_longs);
	printf("%ld %ld %ld\n", times[n / 2], times[n * 99 / 100], times[n - 1]);
	free(times);
}

static void write_map(pid_t pid, const char *name)
{
	static const char map[] = "0 100000 65536";
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, map, sizeof(map) - 1) < 0)
		fail(path);
	close(fd);
}

/* Be user 0 in a new user namespace of user @uid, as newuidmap makes one. */
static void enter_namespace(uid_t uid)
{
	int made[2], mapped[2];
	pid_t parent = getpid(), mapper;
	char c;

	if (pipe(made) || pipe(mapped))
		fail("herd: pipe");
	mapper = fork();
	if (!mapper) {
		if (read(made[0], &c, 1) != 1)
			_exit(1);
		write_map(parent, "uid_map");
		write_map(parent, "gid_map");
		_exit(write(mapped[1], "", 1) != 1);
	}
	if (setresuid(uid, uid, uid) || prctl(PR_SET_DUMPABLE, 1) || unshare(CLONE_NEWUSER))
		fail("herd: cannot make a user namespace");
	if (write(made[1], "", 1) != 1 || read(mapped[0], &c, 1) != 1)
		fail("herd: the user namespace has no map");
	waitpid(mapper, NULL, 0);
	if (setresuid(0, 0, 0))
		fail("herd: setresuid in the user namespace");
}

int main(int argc, char **argv)
{
	int strangers, start[2];
	pid_t herd = getpid();
	uid_t uid;
	long i, n;

	if (argc < 4) {
		fprintf(stderr, "usage: herd UID N KIND [MS]\n");
		return 2;
	}
	uid = atol(argv[1]);
	n = atol(argv[2]);
	milliseconds = argc > 4 ? atol(argv[4]) : 0;
	strangers = !strcmp(argv[3], "strangers");
	/* However many they are, the test itself has a CPU when it needs one. */
	if (strcmp(argv[3], "forks"))
		setpriority(PRIO_PROCESS, 0, 10);
	if (!strcmp(argv[3], "forks")) {
		time_forks(n);
		return 0;
	}
	if (strangers)
		enter_namespace(uid);
	else if (setresuid(uid, uid, uid))
		fail("herd: setresuid");
	if (!strcmp(argv[3], "threads")) {
		make_threads(n);
		n = 0;
	}
	/* All start together, so that the first ones do not keep the CPU from their parent. */
	if (pipe(start))
		fail("herd: pipe");
	for (i = 1; i <= n; i++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("herd: fork");
		if (!pid) {
			char c;

			close(start[1]);
			if (read(start[0], &c, 1))
				_exit(1);
			if (strangers && setresuid(i, i, i))
				fail("herd: setresuid in the user namespace");
			/* Another user id would undo this. */
			end_with(herd);
			live(argv[3]);
		}
		printf("%d\n", pid);
	}
	close(start[1]);
	printf("ready\n");
	fflush(stdout);
	for (;;)
		pause();
}
