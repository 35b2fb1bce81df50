/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Processes that move memory in one way each, for a while, and end. What they
 * really moved is told by the machine, not by them.
 *
 *	memload SHAPE SECONDS [KIB]
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LINE	64
#define THREADS 4

static volatile uint64_t sink;
static double deadline;
static size_t bytes;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static char *memory(void)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	for (size_t i = 0; i < bytes; i += 4096)
		at[i] = 1;
	return at;
}

/* One pass, in pieces of 64 KiB so that the end is not missed by much. */
static void pass(char *at, int write)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < bytes; i += LINE) {
		if (write)
			at[i]++;
		else
			sum += at[i];
		if (!(i % 65536) && now() > deadline)
			break;
	}
	sink += sum;
}

static void stream(int write)
{
	char *at = memory();

	while (now() < deadline)
		pass(at, write);
}

static void jump(void)
{
	uint64_t x = 88172645463325252ULL, sum = 0;
	char *at = memory();

	while (now() < deadline)
		for (int i = 0; i < 1024; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			sum += at[x % bytes & ~(uint64_t)(LINE - 1)];
		}
	sink += sum;
}

static void sleepy(void)
{
	while (now() < deadline)
		usleep(50000);
}

/* Each child touches its own memory once and is gone. */
static void children(void)
{
	while (now() < deadline) {
		pid_t pid = fork();

		if (!pid) {
			prctl(PR_SET_NAME, "memload-child");
			pass(memory(), 0);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

static void *thread(void *arg)
{
	(void)arg;
	while (now() < deadline) {
		stream(0);
		sched_yield();
	}
	return NULL;
}

static void threads(void)
{
	pthread_t id[THREADS];

	bytes /= THREADS;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&id[i], NULL, thread, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(id[i], NULL);
}

/* From CPU to CPU, ten times a second. */
static void migrate(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	double end = deadline;
	char *at = memory();

	for (long cpu = 0; now() < end; cpu = (cpu + 1) % cpus) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
		deadline = now() + 0.1;
		while (now() < deadline)
			pass(at, 0);
	}
}

int main(int argc, char **argv)
{
	const char *shape = argc > 2 ? argv[1] : "";
	char name[16];

	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: memload SHAPE SECONDS [KIB]\n");
		return 2;
	}
	deadline = now() + atof(argv[2]);
	bytes = (argc > 3 ? strtoul(argv[3], NULL, 0) : 16384) * 1024;
	snprintf(name, sizeof(name), "load-%s", shape);
	prctl(PR_SET_NAME, name);
	if (!strcmp(shape, "read"))
		stream(0);
	else if (!strcmp(shape, "write"))
		stream(1);
	else if (!strcmp(shape, "random"))
		jump();
	else if (!strcmp(shape, "idle"))
		sleepy();
	else if (!strcmp(shape, "children"))
		children();
	else if (!strcmp(shape, "threads"))
		threads();
	else if (!strcmp(shape, "migrate"))
		migrate();
	else
		return 2;
	return 0;
}
