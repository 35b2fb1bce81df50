// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (C) 2026 The memwatch authors
/*
 * Leaks memory at a known rate, or grows to a bound.
 *
 *	leak KIND RATE_KB [AFTER_S [BOUND_KB]]
 *
 * KIND: heap     malloc, and write to it
 *       map      anonymous mappings, and write to them
 *       shmem    write to more and more of a shared anonymous mapping
 *       file     write to more and more of a mapped file: no leak, as its pages can be
 *                dropped
 *       reserve  address space only
 *       stacks   threads that end and are never joined
 *
 * Holds 16 MiB from the start, begins to grow at RATE_KB per second after AFTER_S seconds,
 * and stops at BOUND_KB. The leaked bytes are counted in the file that EVAL_COUNTER names.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define KIB	      1024ull
#define MIB	      (1024 * KIB)
#define BASE	      (16 * MIB)
#define TICK_NS	      50000000
#define FURTHEST      (64ull << 30) /* address space for shmem and file */
#define STACK_TOUCHED (16 * KIB)

static volatile uint64_t *counter;
static char *area; /* shmem, file */

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void *touch_stack(void *unused)
{
	volatile char touched[STACK_TOUCHED - 4 * KIB];

	for (size_t i = 0; i < sizeof(touched); i += 4 * KIB)
		touched[i] = 1;
	return unused;
}

static void *map_anonymous(size_t bytes, int protection)
{
	void *p = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Allocates up to @due bytes of the kind. Returns how many bytes it allocated. */
static uint64_t allocate(const char *kind, uint64_t due, uint64_t held)
{
	pthread_t id;
	char *p;

	if (!strcmp(kind, "heap")) {
		uint64_t taken = 0;

		for (; taken + 1008 <= due; taken += 1008)
			if ((p = malloc(1000)))
				memset(p, 1, 1000);
		return taken;
	}
	if (!strcmp(kind, "stacks")) {
		uint64_t taken = 0;

		for (; taken + STACK_TOUCHED <= due; taken += STACK_TOUCHED)
			if (pthread_create(&id, NULL, touch_stack, NULL))
				break;
		return taken;
	}
	due -= due % (4 * KIB);
	if (!due)
		return 0;
	if (!strcmp(kind, "reserve"))
		return map_anonymous(due, PROT_NONE) ? due : 0;
	p = area ? area + held : map_anonymous(due, PROT_READ | PROT_WRITE);
	if (!p || held + due > FURTHEST)
		return 0;
	for (uint64_t i = 0; i < due; i += 4 * KIB)
		p[i] = 1;
	return due;
}

/* Maps the counter, and the area of shmem and file. */
static void map_areas(const char *kind)
{
	const char *path = getenv("EVAL_COUNTER");
	int fd = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;

	if (fd >= 0 && !ftruncate(fd, sizeof(*counter)))
		counter = mmap(NULL, sizeof(*counter), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!strcmp(kind, "shmem"))
		area = mmap(NULL, FURTHEST, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!strcmp(kind, "file")) {
		char name[] = "leak-file-XXXXXX";

		fd = mkstemp(name);
		if (fd < 0 || unlink(name) || ftruncate(fd, (off_t)(8ull << 30)))
			exit(1);
		area = mmap(NULL, 8ull << 30, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	if (area == MAP_FAILED || counter == MAP_FAILED)
		exit(1);
}

int main(int argc, char **argv)
{
	const struct timespec tick = { 0, TICK_NS };
	double rate, after, bound, start = now_s();
	uint64_t held = 0;
	char *base;

	if (argc < 3) {
		fprintf(stderr, "usage: leak KIND RATE_KB [AFTER_S [BOUND_KB]]\n");
		return 2;
	}
	rate = atof(argv[2]) * KIB;
	after = argc > 3 ? atof(argv[3]) : 0;
	bound = argc > 4 ? atof(argv[4]) * KIB : (double)FURTHEST;
	map_areas(argv[1]);
	base = map_anonymous(BASE, PROT_READ | PROT_WRITE);
	if (!base)
		return 1;
	memset(base, 1, BASE);
	for (;;) {
		double due = (now_s() - start - after) * rate;

		if (due > bound)
			due = bound;
		if (due > (double)held)
			held += allocate(argv[1], (uint64_t)due - held, held);
		if (counter)
			*counter = held;
		nanosleep(&tick, NULL);
	}
}
