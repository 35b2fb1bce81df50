// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The program whose instructions heap.bench counts, with and without the heap profiler.
 *
 *	heap-pairs pairs N             N times malloc(64) and free()
 *	heap-pairs samples N THREADS   the same below 30 frames, in threads; prints the CPU time of
 *	                               a pair in nanoseconds
 *	heap-pairs start               nothing; prints its resident set in KiB
 *	heap-pairs live N              keeps N objects; says so and runs until its input ends;
 *	                               prints for how many nanoseconds it was stopped meanwhile
 */
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEPTH 30

static uint64_t pairs;

__attribute__((noipa)) static void pairs_run(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		void *volatile memory = malloc(64);

		free(memory);
	}
}

__attribute__((noipa)) static int frames_below(int depth)
{
	volatile int frames = 0; /* keeps the compiler from making a loop of it */

	if (depth)
		frames = frames_below(depth - 1);
	else
		pairs_run(pairs);
	return frames + 1;
}

static void *samples_thread(void *argument)
{
	return (void *)(uintptr_t)(frames_below(DEPTH) + (argument != NULL));
}

static double cpu_seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void samples_run(int threads)
{
	pthread_t thread[64];
	double begin = cpu_seconds();

	for (int n = 0; n < threads && n < 64; n++)
		pthread_create(&thread[n], NULL, samples_thread, NULL);
	for (int n = 0; n < threads && n < 64; n++)
		pthread_join(thread[n], NULL);
	printf("%.1f\n", (cpu_seconds() - begin) * 1e9 / (double)pairs / threads);
}

static void resident_print(void)
{
	unsigned long size, resident;
	FILE *file = fopen("/proc/self/statm", "r");

	if (file && fscanf(file, "%lu %lu", &size, &resident) == 2)
		printf("%lu\n", resident * 4);
}

static double clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* For how long this thread has waited for a processor. */
static unsigned long waited_ns(void)
{
	unsigned long wait = 0;
	FILE *file = fopen("/proc/thread-self/schedstat", "r");
	bool good = file && fscanf(file, "%*u %lu", &wait) == 1;

	if (file)
		fclose(file);
	if (!good)
		exit(1);
	return wait;
}

/* Time for which this thread neither ran nor waited for a processor. It never sleeps. */
static double stopped_ns(void)
{
	unsigned long before, after = waited_ns();
	double ns;

	/* The clocks belong together if the thread ran all the time between them. */
	do {
		before = after;
		ns = clock_ns(CLOCK_MONOTONIC) - clock_ns(CLOCK_THREAD_CPUTIME_ID);
		after = waited_ns();
	} while (before != after);
	return ns - (double)after;
}

static void live_run(uint64_t count)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	double begin;

	for (uint64_t i = 0; i < count; i++) {
		void *volatile memory = malloc(64);

		(void)memory;
	}
	puts("ready");
	fflush(stdout);
	begin = stopped_ns();
	while (poll(&input, 1, 0) == 0)
		pairs_run(1000);
	printf("%.0f\n", stopped_ns() - begin);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "start")) {
		resident_print();
		return 0;
	}
	if (!strcmp(argv[1], "live")) {
		live_run(argc > 2 ? strtoull(argv[2], NULL, 10) : 100000);
		return 0;
	}
	pairs = argc > 2 ? strtoull(argv[2], NULL, 10) : 100000;
	if (!strcmp(argv[1], "pairs"))
		pairs_run(pairs);
	else
		samples_run(argc > 3 ? atoi(argv[3]) : 1);
	return 0;
}
