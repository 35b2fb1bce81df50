// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The steps that operations consist of: fork, wait, execute, sleep, count, draw a number.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "prng.h"
#include "storm.h"

struct storm_shared *storm_shared;
const char *storm_tiny = "./tiny";

static struct prng prng;
static char *const tiny_arguments[] = { (char *)"tiny", NULL };
static char *const tiny_environment[] = { NULL };

void storm_add(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

void storm_count_failure(void)
{
	__atomic_store_n(&storm_shared->last_errno, errno, __ATOMIC_RELAXED);
	storm_add(&storm_shared->failures, 1);
}

void storm_random_seed(uint64_t seed)
{
	prng.state = seed;
}

unsigned int storm_random_below(unsigned int n)
{
	return prng_below(&prng, n);
}

uint64_t storm_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

void storm_sleep_us(unsigned int us)
{
	struct timespec ts = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L };

	nanosleep(&ts, NULL);
}

void storm_spin_us(unsigned int us)
{
	uint64_t end = storm_now_ns() + us * 1000ULL;

	while (storm_now_ns() < end)
		;
}

void storm_reap(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, __WALL) < 0)
		if (errno != EINTR)
			return;
}

pid_t storm_fork(void)
{
	pid_t pid = fork();

	if (pid > 0)
		storm_add(&storm_shared->lifetimes, 1);
	else if (pid < 0)
		storm_count_failure();
	return pid;
}

void storm_exec_tiny(void)
{
	execve(storm_tiny, tiny_arguments, tiny_environment);
	storm_count_failure();
	_exit(127);
}

/*
 * Returns in the parent only. The child borrows the stack of its parent until it executes,
 * so it must neither return from this function nor write anything.
 */
void storm_vfork_exec_tiny(void)
{
	pid_t pid = vfork();

	if (!pid) {
		execve(storm_tiny, tiny_arguments, tiny_environment);
		_exit(127);
	}
	if (pid < 0) {
		storm_count_failure();
		return;
	}
	storm_add(&storm_shared->lifetimes, 1);
	storm_add(&storm_shared->execs, 1);
	storm_reap(pid);
}
