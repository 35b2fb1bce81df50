// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * fork-storm WORKERS COUNT: each worker forks COUNT processes, one after the other, that exit at
 * once. Prints how long fork() took, and how long it was from fork() to the end of waitpid(): the
 * median, the 99th percentile and the maximum, in nanoseconds.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static _Noreturn void run_worker(size_t count, uint64_t *forks, uint64_t *lives)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t begin = clock_ns();
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		if (pid < 0)
			_exit(1);
		forks[i] = clock_ns() - begin;
		if (waitpid(pid, NULL, 0) != pid)
			_exit(1);
		lives[i] = clock_ns() - begin;
	}
	_exit(0);
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void print_latency(const char *name, uint64_t *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare_numbers);
	printf("%s %llu %llu %llu\n", name, (unsigned long long)values[count / 2],
	       (unsigned long long)values[count * 99 / 100], (unsigned long long)values[count - 1]);
}

int main(int argc, char **argv)
{
	size_t workers = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;
	size_t count = workers ? strtoul(argv[2], NULL, 10) : 0, all = workers * count;
	uint64_t *forks, *lives;
	int status;

	if (!all) {
		fprintf(stderr, "usage: fork-storm WORKERS COUNT\n");
		return 2;
	}
	forks = mmap(NULL, 2 * all * sizeof(*forks), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (forks == MAP_FAILED)
		return 1;
	lives = forks + all;
	for (size_t i = 0; i < workers; i++)
		if (!fork())
			run_worker(count, forks + i * count, lives + i * count);
	for (size_t i = 0; i < workers; i++)
		if (wait(&status) < 0 || status)
			return 1;
	print_latency("fork", forks, all);
	print_latency("fork_to_wait", lives, all);
	return 0;
}
