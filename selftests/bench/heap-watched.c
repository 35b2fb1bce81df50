// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * heap-watched SECONDS: a heap of 60 000 objects, 240 MB, of which 20 MB are replaced in each
 * second. Prints the CPU time of the process in that time, in milliseconds.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "selftests/prng.h"

#define OBJECTS	    60000
#define REPLACED    6000
#define OBJECT_MOST 8000
#define WARM_S	    30
#define STEP_NS	    10000000
#define STEP_BYTES  200000

static struct {
	char *at;
	size_t size;
} objects[OBJECTS];

static size_t object_replace(struct prng *prng, size_t n)
{
	size_t size = 16 + prng_below(prng, OBJECT_MOST);

	free(objects[n].at);
	objects[n].at = malloc(size);
	objects[n].size = size;
	memset(objects[n].at, (int)n, size);
	return size;
}

static double seconds_of(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void objects_use(struct prng *prng, double seconds)
{
	double begin = seconds_of(CLOCK_MONOTONIC);
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	while (seconds_of(CLOCK_MONOTONIC) - begin < seconds) {
		for (size_t bytes = 0; bytes < STEP_BYTES;)
			bytes += object_replace(prng, prng_below(prng, REPLACED));
		next.tv_nsec += STEP_NS;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
}

int main(int argc, char **argv)
{
	struct prng prng = { 1 };
	double cpu;

	for (size_t n = 0; n < OBJECTS; n++)
		object_replace(&prng, n);
	objects_use(&prng, WARM_S);
	cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
	objects_use(&prng, argc > 1 ? atof(argv[1]) : 1);
	printf("%.1f\n", 1000 * (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu));
	return 0;
}
