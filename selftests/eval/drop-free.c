// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (C) 2026 The memwatch authors
/*
 * Preloaded: makes any program leak, by forgetting some of its calls to free.
 *
 *	EVAL_LEAK_PERMILLE  share of the calls that are forgotten (0)
 *	EVAL_LEAK_RATE      but no more bytes a second than this (no limit)
 *	EVAL_LEAK_AFTER     seconds of the process's life before the first (0)
 *	EVAL_COUNTER        file whose first eight bytes count the bytes leaked
 *
 * Works with any allocator, because the program's own free() is looked up. A
 * child inherits the settings: its life, and its share of the rate, are its own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static void (*real_free)(void *);
static size_t (*real_usable_size)(void *);
static _Atomic uint64_t own_counter, *counter = &own_counter, calls;
static uint64_t permille, rate;
static double start;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static uint64_t number(const char *name)
{
	const char *value = getenv(name);

	return value ? strtoull(value, NULL, 10) : 0;
}

static void __attribute__((constructor)) set_up(void)
{
	const char *path = getenv("EVAL_COUNTER");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (fd >= 0 && !ftruncate(fd, sizeof(*counter))) {
		void *shared = mmap(NULL, sizeof(*counter), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				    0);

		if (shared != MAP_FAILED)
			counter = shared;
	}
	if (fd >= 0)
		close(fd);
	real_usable_size = (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
	start = now() + (double)number("EVAL_LEAK_AFTER");
	rate = number("EVAL_LEAK_RATE");
	permille = number("EVAL_LEAK_PERMILLE");
	real_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
}

/* Spread over the calls, so that no period of the program falls in step. */
static int chosen(void)
{
	uint64_t n = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) *
		     0x9e3779b97f4a7c15ull;

	return (n >> 32) % 1000 < permille;
}

void free(void *p)
{
	if (!p || !real_free) /* before set_up: what the loader frees is nothing */
		return;
	if (permille && real_usable_size && chosen()) {
		uint64_t size = real_usable_size(p);
		double due = (now() - start) * (double)rate;
		uint64_t leaked = atomic_load_explicit(counter, memory_order_relaxed);

		if (now() >= start && (!rate || (double)(leaked + size) <= due)) {
			atomic_fetch_add_explicit(counter, size, memory_order_relaxed);
			return;
		}
	}
	real_free(p);
}
