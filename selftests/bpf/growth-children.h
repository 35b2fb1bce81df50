/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the child processes of the growth tests do.
 */
#ifndef GROWTH_CHILDREN_H
#define GROWTH_CHILDREN_H

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

#include "growth-rig.h"

/* Holds 64 MiB anonymous and 32 MiB shared memory. */
static inline void hold_memory(struct child *c)
{
	map_touched(64 * MIB, MAP_PRIVATE);
	map_touched(32 * MIB, MAP_SHARED);
	send_byte(c->done[1]);
	await_byte(c->go[0]);
}

static inline void wait_for_test(struct child *c)
{
	send_byte(c->done[1]);
	await_byte(c->go[0]);
}

/* Holds 40 MiB, and forks a child that holds 8 MiB more. */
static inline void fork_larger_child(struct child *c)
{
	map_touched(40 * MIB, MAP_PRIVATE);
	if (!fork()) {
		map_touched(8 * MIB, MAP_PRIVATE);
		send_byte(c->done[1]);
		pause();
	}
	await_byte(c->go[0]);
}

/* The first child of a process, or 0. */
static inline pid_t find_child_of(pid_t pid)
{
	char path[64];
	int child = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	file = fopen(path, "r");
	if (file && fscanf(file, "%d", &child) != 1)
		child = 0;
	if (file)
		fclose(file);
	return child;
}

/* Holds 80 MiB until the test goes on, then calls exec. */
static inline void hold_then_exec(struct child *c)
{
	char go[16];

	map_touched(80 * MIB, MAP_PRIVATE);
	send_byte(c->done[1]);
	await_byte(c->go[0]);
	map_touched(20 * MIB, MAP_PRIVATE);
	await_byte(c->go[0]);
	snprintf(go, sizeof(go), "%d", c->go[0]);
	execl("/proc/self/exe", "growth", "--wait", go, (char *)NULL); /* its name is "exe" */
	_exit(1);
}

static int release_fd;

static inline void *wait_in_thread(void *arg)
{
	(void)arg;
	await_byte(release_fd);
	_exit(0);
}

static inline void *end_thread(void *arg)
{
	return arg;
}

/* Ends eight threads and then its leader; one thread stays. */
static inline void lose_leader(struct child *c)
{
	pthread_t threads[8], last;

	release_fd = c->go[0];
	map_touched(48 * MIB, MAP_PRIVATE);
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, end_thread, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	pthread_create(&last, NULL, wait_in_thread, NULL);
	send_byte(c->done[1]);
	/* Ends the calling thread only; exit() would end them all. */
	syscall(SYS_exit, 0);
}

static inline int run_vforked(void *arg)
{
	struct child *c = arg;

	send_byte(c->done[1]);
	await_byte(c->go[0]);
	_exit(0);
}

/* Holds 40 MiB and waits in a vfork for its child. */
static inline void vfork_child(struct child *c)
{
	static char stack[65536] __attribute__((aligned(16)));

	map_touched(40 * MIB, MAP_PRIVATE);
	clone(run_vforked, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, c);
	pause();
}

/* Holds 64 MiB, and swaps them out when the test goes on. */
static inline void swap_out(struct child *c)
{
	char *p = map_touched(64 * MIB, MAP_PRIVATE);

	send_byte(c->done[1]);
	await_byte(c->go[0]);
	madvise(p, 64 * MIB, 21 /* MADV_PAGEOUT */);
	send_byte(c->done[1]);
	await_byte(c->go[0]);
}

/* Leaks 20 MiB/s until RLIMIT_DATA stops it, from @wait_s seconds on. */
static inline void leak_to_limit(struct child *c, unsigned int wait_s)
{
	struct rlimit limit = { 400 * MIB, 400 * MIB };

	setrlimit(RLIMIT_DATA, &limit);
	map_touched(100 * MIB, MAP_PRIVATE);
	send_byte(c->done[1]);
	await_byte(c->go[0]);
	sleep(wait_s);
	for (;;) {
		void *p = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

		if (p == MAP_FAILED)
			break;
		memset(p, 1, 2 * MIB);
		usleep(100000);
	}
	send_byte(c->done[1]);
	await_byte(c->go[0]);
}

/*
 * What begins in the first ten seconds after the first sample is taken for a start-up, and growth
 * begins with the last sample before it, which may be some seconds old.
 */
static inline void leak_after_start(struct child *c)
{
	leak_to_limit(c, 16);
}

static inline void leak_from_start(struct child *c)
{
	leak_to_limit(c, 0);
}

/* Grows by 24 MiB each time that the test goes on. */
static inline void grow_in_steps(struct child *c)
{
	for (int i = 0; i < 20; i++) {
		await_byte(c->go[0]);
		map_touched(24 * MIB, MAP_PRIVATE);
		send_byte(c->done[1]);
	}
	pause();
}

#endif /* GROWTH_CHILDREN_H */
