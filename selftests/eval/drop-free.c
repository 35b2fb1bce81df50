// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (C) 2026 The memwatch authors
/*
 * A library to preload. It makes any program leak, by dropping some of its calls of free().
 *
 *	EVAL_LEAK_PERMILLE  share of the calls to drop, in thousandths; default 0
 *	EVAL_LEAK_RATE      most bytes per second to leak; default: no maximum
 *	EVAL_LEAK_AFTER     seconds from the start of the process to the first drop; default 0
 *	EVAL_COUNTER        file whose first eight bytes count the leaked bytes
 *
 * Works with any allocator, because free() is looked up in the program. A child process
 * inherits the settings, but has a start time and a rate of its own.
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

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static uint64_t read_setting(const char *name)
{
	const char *value = getenv(name);

	return value ? strtoull(value, NULL, 10) : 0;
}

static void __attribute__((constructor)) read_settings(void)
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
	start = now_s() + (double)read_setting("EVAL_LEAK_AFTER");
	rate = read_setting("EVAL_LEAK_RATE");
	permille = read_setting("EVAL_LEAK_PERMILLE");
	real_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
}

/* Whether to drop this call. A hash spreads the drops, so that they have no period. */
static int is_dropped(void)
{
	uint64_t n = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) *
		     0x9e3779b97f4a7c15ull;

	return (n >> 32) % 1000 < permille;
}

void free(void *p)
{
	if (!p || !real_free) /* the dynamic linker may call this before read_settings() */
		return;
	if (permille && real_usable_size && is_dropped()) {
		uint64_t size = real_usable_size(p);
		double due = (now_s() - start) * (double)rate;
		uint64_t leaked = atomic_load_explicit(counter, memory_order_relaxed);

		if (now_s() >= start && (!rate || (double)(leaked + size) <= due)) {
			atomic_fetch_add_explicit(counter, size, memory_order_relaxed);
			return;
		}
	}
	real_free(p);
}
