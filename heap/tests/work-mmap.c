// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Memory that a program maps itself.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "heap/tests/work.h"
#include "selftests/prng.h"

__attribute__((noipa)) static char *map_some(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* One mapping, of which a part is given back, or which grows. Returns the bytes that are left. */
static size_t map_one(struct prng *prng)
{
	size_t page = 4096, size = page * (2 + prng_below(prng, 100)), cut;
	char *memory = map_some(size);

	cut = page * (1 + prng_below(prng, size / page - 1));
	switch (prng_below(prng, 6)) {
	case 0:
		munmap(memory, size);
		return 0;
	case 1:
		munmap(memory, cut);
		return size - cut;
	case 2:
		munmap(memory + cut, size - cut);
		return cut;
	case 3:
		return mremap(memory, size, 3 * size, MREMAP_MAYMOVE) != MAP_FAILED ? 3 * size : 0;
	case 4:
		/* What is reserved or comes from a file does not count. */
		mmap(memory, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		return 0;
	default:
		/* An unmapping that fails changes nothing. */
		return munmap(memory + 1, size) ? size : 0;
	}
}

/* mmap COUNT: prints the bytes that stay mapped. */
int work_mmap(char **argv)
{
	struct prng prng = { 11 };
	uint64_t bytes = 0;

	for (uint64_t n = work_number(argv, 0, 100); n > 0; n--)
		bytes += map_one(&prng);
	printf("%" PRIu64 "\n", bytes);
	fflush(stdout);
	_exit(0);
}

/* region COUNT: maps so many pages side by side, one by one, and unmaps all at once. */
int work_region(char **argv)
{
	uint64_t page = 4096, count = work_number(argv, 0, 100);
	char *region = mmap(NULL, count * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (uint64_t n = 0; n < count; n++)
		if (mmap(region + n * page, page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			return 1;
	_exit(munmap(region, count * page) != 0);
}

#define REMAP_BYTES (100u << 10)

/* Moves a mapping that is no memory of the program, and makes it twice as large. */
static int remap_one(int protection, int flags, int fd)
{
	char *memory = mmap(NULL, REMAP_BYTES, protection, flags, fd, 0);

	memory = mremap(memory, REMAP_BYTES, 2 * REMAP_BYTES, MREMAP_MAYMOVE);
	return memory == MAP_FAILED || munmap(memory, REMAP_BYTES / 2);
}

/*
 * remap COUNT: moves mappings of a file and of address space that is only reserved, of which a part
 * stays. Between them, it allocates other objects that stay; prints their bytes.
 */
int work_remap(char **argv)
{
	uint64_t count = work_number(argv, 0, 1000);
	int fd = open("/proc/self/exe", O_RDONLY);

	for (uint64_t n = 0; n < count; n++) {
		if (remap_one(PROT_READ, MAP_PRIVATE, fd) ||
		    remap_one(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1))
			return 1;
		work_allocate(30000);
	}
	printf("%" PRIu64 "\n", count * 30000);
	fflush(stdout);
	_exit(0);
}

#define HALVES_BYTES (64u << 10)

static void *halve(void *memory)
{
	munmap(memory, HALVES_BYTES / 2);
	return NULL;
}

/*
 * halves COUNT: mappings of which threads unmap one half each, as the first and only call of their
 * lives. Prints the bytes that stay mapped.
 */
int work_halves(char **argv)
{
	uint64_t count = work_number(argv, 0, 1000);
	pthread_t thread;

	for (uint64_t n = 0; n < count; n++) {
		if (pthread_create(&thread, NULL, halve, map_some(HALVES_BYTES)))
			return 1;
		pthread_join(thread, NULL);
	}
	printf("%" PRIu64 "\n", count * (HALVES_BYTES / 2));
	fflush(stdout);
	_exit(0);
}

static bool handler_ends;

static void handler_map(int signal)
{
	char *memory = map_some(8 << 20);

	(void)signal;
	munmap(memory, 8 << 20);
}

/* The allocator holds its locks most of the time. */
static void *trim_always(void *first)
{
	if (!first)
		work_allocate(1000000);
	while (!__atomic_load_n(&handler_ends, __ATOMIC_RELAXED))
		malloc_trim(0);
	return NULL;
}

/*
 * handler [first]: a signal handler that interrupts the allocator maps memory; "first": that is
 * the first call of its thread.
 */
int work_handler(char **argv)
{
	const struct timespec pause = { 0, 10000000 };
	static void *chunks[4000];
	pthread_t thread;

	alarm(30);
	signal(SIGUSR1, handler_map);
	for (size_t i = 0; i < 4000; i++)
		chunks[i] = malloc(9000);
	for (size_t i = 0; i < 4000; i += 2)
		free(chunks[i]);
	if (pthread_create(&thread, NULL, trim_always, *argv))
		return 1;
	/* Figures are taken half a second after the first sample. */
	for (int i = 0; i < 80; i++) {
		nanosleep(&pause, NULL);
		pthread_kill(thread, SIGUSR1);
	}
	handler_ends = true;
	pthread_join(thread, NULL);
	work_allocate(3000000);
	return 0;
}
