/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A process that accesses memory in one way for some seconds, and ends. The simulated
 * machine says what it has moved; the process itself does not count. The shapes read, write
 * and random can also do an amount of work that does not depend on the speed of the machine:
 * so many passes over the memory, or so many times 1024 accesses.
 *
 *	memload SHAPE SECONDS [KIB]
 *	memload SHAPE PASSESx [KIB]
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "prng.h"

#define LINE	64
#define THREADS 4

static volatile uint64_t sink; /* so that the compiler keeps the reads */
static double deadline;	       /* in seconds, CLOCK_MONOTONIC */
static long passes = -1;       /* left to do; negative: until the deadline */
static size_t bytes;	       /* of memory */

static double now_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static bool load_goes_on(void)
{
	return passes < 0 ? now_seconds() < deadline : passes-- > 0;
}

/* Every page of it is mapped. */
static char *memory_map(void)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		perror("memload: mmap");
		exit(1);
	}
	for (size_t i = 0; i < bytes; i += 4096)
		at[i] = 1;
	return at;
}

/* Access each line once; look at the clock every 64 KiB. */
static void memory_walk(char *at, bool write)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < bytes; i += LINE) {
		if (write)
			at[i]++;
		else
			sum += at[i];
		if (!(i % 65536) && now_seconds() > deadline)
			break;
	}
	sink += sum;
}

static void load_stream(bool write)
{
	char *at = memory_map();

	while (load_goes_on())
		memory_walk(at, write);
}

static void load_random(void)
{
	struct prng prng = { .state = 1 };
	uint64_t sum = 0;
	char *at = memory_map();

	while (load_goes_on())
		for (int i = 0; i < 1024; i++)
			sum += at[prng_below(&prng, bytes) & ~(uint64_t)(LINE - 1)];
	sink += sum;
}

static void load_idle(void)
{
	while (now_seconds() < deadline)
		usleep(50000);
}

/* Each child walks over memory of its own once and exits. */
static void load_children(void)
{
	while (now_seconds() < deadline) {
		pid_t pid = fork();

		if (!pid) {
			prctl(PR_SET_NAME, "memload-child");
			memory_walk(memory_map(), false);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

static void *thread_main(void *arg)
{
	(void)arg;
	while (now_seconds() < deadline) {
		load_stream(false);
		sched_yield();
	}
	return NULL;
}

static void load_threads(void)
{
	pthread_t id[THREADS];

	bytes /= THREADS;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&id[i], NULL, thread_main, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(id[i], NULL);
}

/* Moves to the next CPU ten times a second. */
static void load_migrate(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	double end = deadline;
	char *at = memory_map();

	for (long cpu = 0; now_seconds() < end; cpu = (cpu + 1) % cpus) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
		deadline = now_seconds() + 0.1;
		while (now_seconds() < deadline)
			memory_walk(at, false);
	}
}

static void load_read(void)
{
	load_stream(false);
}

static void load_write(void)
{
	load_stream(true);
}

static const struct {
	const char *shape;
	void (*run)(void);
} loads[] = {
	{ "read", load_read },	     { "write", load_write },	    { "random", load_random },
	{ "idle", load_idle },	     { "children", load_children }, { "threads", load_threads },
	{ "migrate", load_migrate },
};

int main(int argc, char **argv)
{
	const char *shape = argc > 2 ? argv[1] : "";
	char name[16];

	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: memload SHAPE SECONDS|PASSESx [KIB]\n");
		return 2;
	}
	deadline = now_seconds() + atof(argv[2]);
	if (strchr(argv[2], 'x')) {
		passes = atol(argv[2]);
		deadline = HUGE_VAL;
	}
	bytes = (argc > 3 ? strtoul(argv[3], NULL, 0) : 16384) * 1024;
	snprintf(name, sizeof(name), "load-%s", shape);
	prctl(PR_SET_NAME, name);
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
		if (!strcmp(shape, loads[i].shape)) {
			loads[i].run();
			return 0;
		}
	fprintf(stderr, "memload: there is no shape '%s'\n", shape);
	return 2;
}
