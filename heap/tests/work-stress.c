// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Everything at once, for a while: threads that free each other's objects, threads that come and
 * go, children, signals, libraries that are loaded and unloaded, mappings.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "heap/tests/work.h"
#include "selftests/prng.h"

#define SLOTS	    4096
#define THREADS_MAX 256

static void *slots[SLOTS];
static const char *plugin;
static volatile bool ended;
static uint64_t operations, children, failures, loads, signals;

static void count(uint64_t *counter, uint64_t by)
{
	__atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

static void *allocate(struct prng *prng)
{
	size_t size = 1 + prng_below(prng, 3000);
	void *memory = NULL;

	switch (prng_below(prng, 5)) {
	case 0:
		return calloc(1, size);
	case 1:
		return realloc(malloc(size), 2 * size);
	case 2:
		return posix_memalign(&memory, 64, size) ? NULL : memory;
	case 3:
		return memalign(4096, size);
	default:
		return malloc(size);
	}
}

static void map_and_unmap(struct prng *prng)
{
	size_t size = 4096 * (2 + prng_below(prng, 50));
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || munmap(memory, 4096) || munmap(memory + 4096, size - 4096))
		count(&failures, 1);
}

/* Some of the objects are freed by other threads. */
static void churn(struct prng *prng, unsigned int rounds)
{
	for (unsigned int n = 0; n < rounds; n++) {
		void **slot = &slots[prng_below(prng, SLOTS)];

		free(__atomic_exchange_n(slot, allocate(prng), __ATOMIC_ACQ_REL));
		free(allocate(prng));
	}
	map_and_unmap(prng);
	count(&operations, rounds);
}

static void *churn_thread(void *argument)
{
	struct prng prng = { (uintptr_t)argument };

	while (!ended)
		churn(&prng, 100);
	return NULL;
}

static void *short_thread(void *argument)
{
	struct prng prng = { (uintptr_t)argument };

	churn(&prng, 10);
	return NULL;
}

static void *spawning_thread(void *argument)
{
	for (uintptr_t n = (uintptr_t)argument; !ended; n++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, short_thread, (void *)n) ||
		    pthread_join(thread, NULL))
			count(&failures, 1);
	}
	return NULL;
}

/* A child leaves a profile, which would fill the disk after a while. */
static void profile_remove(pid_t pid)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s/work.%d.mwheap", getenv("MEMWATCH_HEAP_DIR"), (int)pid);
	unlink(path);
}

static void *forking_thread(void *argument)
{
	struct prng prng = { (uintptr_t)argument };

	while (!ended) {
		int status = -1;
		pid_t child = fork();

		if (!child) {
			churn(&prng, 100);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			count(&failures, 1);
		profile_remove(child);
		count(&children, 1);
	}
	return NULL;
}

static void *loading_thread(void *argument)
{
	(void)argument;
	while (!ended) {
		void *library = dlopen(plugin, RTLD_NOW);
		void *(*keep)(size_t) = library ? (void *(*)(size_t))dlsym(library, "plugin_keep")
						: NULL;

		if (!keep) {
			count(&failures, 1);
			return NULL;
		}
		free(keep(1000));
		dlclose(library);
		count(&loads, 1);
	}
	return NULL;
}

static void signal_handler(int number)
{
	(void)number;
	count(&signals, 1);
}

static bool signals_begin(void)
{
	const struct itimerspec timing = { { 0, 500000 }, { 0, 500000 } };
	struct sigaction action = { .sa_handler = signal_handler, .sa_flags = SA_RESTART };
	timer_t timer;

	return !sigaction(SIGALRM, &action, NULL) && !timer_create(CLOCK_MONOTONIC, NULL, &timer) &&
	       !timer_settime(timer, 0, &timing, NULL);
}

/* stress PLUGIN THREADS SECONDS: frees everything at the end; prints what it has done. */
int work_stress(char **argv)
{
	static void *(*const others[])(void *) = { forking_thread, forking_thread, loading_thread,
						   spawning_thread };
	const size_t others_count = sizeof(others) / sizeof(others[0]);
	static pthread_t threads[THREADS_MAX];
	uint64_t wanted = work_number(argv, 1, 64);
	time_t end = time(NULL) + (time_t)work_number(argv, 2, 10);

	plugin = argv[0];
	if (!signals_begin())
		return 1;
	for (uint64_t n = 0; n < wanted && n < THREADS_MAX; n++)
		if (pthread_create(&threads[n], NULL, n < others_count ? others[n] : churn_thread,
				   (void *)(uintptr_t)(n * 1000003 + 1)))
			return 1;
	while (time(NULL) < end)
		usleep(10000);
	ended = true;
	for (uint64_t n = 0; n < wanted && n < THREADS_MAX; n++)
		pthread_join(threads[n], NULL);
	for (size_t n = 0; n < SLOTS; n++)
		free(slots[n]);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", operations,
	       children, loads, signals, failures);
	fflush(stdout);
	_exit(0);
}
