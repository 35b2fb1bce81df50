// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Programs of which it is known why they use memory:
 *
 *	rss-answers KIND DIRECTORY
 *
 * Each prints "ready" when it has done what it does, and then allocates a little now and then, as
 * a program does that waits for work. For each line on standard input it prints "live BYTES", which
 * it has requested from malloc and not freed; then, if the line is "trim", it calls malloc_trim()
 * and prints "trimmed BYTES", by which its resident set has become smaller.
 */
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MIB	(1UL << 20)
#define THREADS 16

static uint64_t live;
static int leaks;
static const char *directory;

static void *__attribute__((noinline)) take(size_t size)
{
	void *p = malloc(size);

	if (!p)
		exit(2);
	memset(p, 'x', size);
	__atomic_add_fetch(&live, size, __ATOMIC_RELAXED);
	return p;
}

static void give(void *p, size_t size)
{
	__atomic_sub_fetch(&live, size, __ATOMIC_RELAXED);
	free(p);
}

static uint32_t random_below(uint32_t limit)
{
	static __thread uint64_t state = 88172645463325252ULL;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 32) % limit);
}

static size_t random_size(void)
{
	return 16 + random_below(16) * random_below(64);
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

static void *__attribute__((noinline)) keep_block(void)
{
	return take(random_size());
}

/* Goes on leaking while the program waits. */
static void make_leak(void)
{
	for (int step = 0; step < 10; step++) {
		for (uint64_t end = live + 4 * MIB; live < end;)
			keep_block();
		pause_ms(200);
	}
	leaks = 1;
}

/* A table that is filled at the beginning and then stays. */
static void make_table(void)
{
	while (live < 200 * MIB)
		keep_block();
	pause_ms(3000);
}

/* Blocks of a peak are freed but for one in @keep, whose places are regular or random. */
static void make_peak(size_t count, size_t size, unsigned int keep, int regular)
{
	void **blocks = calloc(count, sizeof(*blocks));

	for (size_t i = 0; i < count; i++)
		blocks[i] = take(size);
	for (size_t i = 0; i + 1 < count; i++)
		if (regular ? i % keep : random_below(keep))
			give(blocks[i], size);
	free(blocks);
}

/* The last block keeps the top of the heap where it is: the C library returns nothing. */
static void make_hoard(void)
{
	make_peak(400000, 500, 400000, 1);
}

static void make_pinned(void)
{
	make_peak(2500000, 64, 50, 1);
}

/* Survivors at random places, some of which leave whole pages between them. */
static void make_partly(void)
{
	make_peak(400000, 500, 40, 0);
}

static void *fill_arena(void *data)
{
	pthread_barrier_t *barrier = data;
	void *blocks[10000];

	for (int i = 0; i < 10000; i++)
		blocks[i] = take(1000);
	pthread_barrier_wait(barrier);
	for (int i = 0; i < 9999; i++)
		give(blocks[i], 1000);
	pthread_barrier_wait(barrier);
	pause();
	return NULL;
}

/* Each thread has an arena of its own, and had its peak. */
static void make_arenas(void)
{
	pthread_barrier_t *barrier = malloc(sizeof(*barrier));
	pthread_t thread;

	mallopt(M_ARENA_MAX, THREADS + 1);
	pthread_barrier_init(barrier, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL, fill_arena, barrier);
	pthread_barrier_wait(barrier);
	pthread_barrier_wait(barrier);
}

static void *map(size_t size, int flags, int fd)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED)
		exit(2);
	memset(p, 'y', size);
	return p;
}

static void make_mmap(void)
{
	for (int i = 0; i < 10; i++)
		map(16 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void make_file(void)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/data", directory);
	file = fopen(path, "w+");
	if (!file || ftruncate(fileno(file), 150 * MIB))
		exit(2);
	map(150 * MIB, MAP_SHARED, fileno(file));
}

static void make_tmpfs(void)
{
	int fd = memfd_create("table", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, 100 * MIB))
		exit(2);
	map(100 * MIB, MAP_SHARED, fd);
	map(50 * MIB, MAP_SHARED | MAP_ANONYMOUS, -1);
}

static void *use_stack(void *data)
{
	volatile char room[6 * MIB];

	for (size_t i = 0; i < sizeof(room); i += 4096)
		room[i] = 's';
	pthread_barrier_wait(data);
	pause();
	return (void *)(uintptr_t)room[0];
}

/* Where an arena could be, and without a guard page: only the stack pointer tells what it is. */
static void place_stack(pthread_attr_t *attr)
{
	const size_t align = 64 * MIB, size = 8 * MIB;
	char *room = mmap(NULL, 2 * align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *stack = room + (align - (uintptr_t)room % align) % align;

	if (room == MAP_FAILED || mprotect(stack, size, PROT_READ | PROT_WRITE))
		exit(2);
	pthread_attr_init(attr);
	pthread_attr_setstack(attr, stack, size);
}

static void make_stacks(void)
{
	pthread_barrier_t *barrier = malloc(sizeof(*barrier));
	pthread_attr_t placed;
	pthread_t thread;

	place_stack(&placed);
	pthread_barrier_init(barrier, NULL, 24 + 1);
	for (int i = 0; i < 24; i++)
		pthread_create(&thread, i ? NULL : &placed, use_stack, barrier);
	pthread_barrier_wait(barrier);
}

/* Blocks that the C library maps one by one, and half of them is never touched. */
static void make_blocks(void)
{
	for (int i = 0; i < 60; i++) {
		size_t size = (1 + random_below(6)) * MIB + random_below(4096);
		char *p = malloc(size);

		memset(p, 'z', i % 2 ? size : 0);
		live += size;
	}
	make_mmap();
}

static uint64_t resident(void)
{
	unsigned long long pages = 0;
	char line[256];
	FILE *file = fopen("/proc/self/smaps_rollup", "r");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Rss: %llu", &pages) == 1)
			break;
	fclose(file);
	return pages << 10;
}

/* Small blocks, so that samples are taken and with them figures of the allocator. */
static void idle(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };

	while (!poll(&in, 1, 20)) {
		for (int i = 0; i < 100; i++)
			free(malloc(20000));
		for (uint64_t end = live + leaks * MIB / 3; live < end;)
			keep_block();
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*make)(void);
	} kinds[] = {
		{ "leak", make_leak },	   { "table", make_table },   { "hoard", make_hoard },
		{ "arenas", make_arenas }, { "pinned", make_pinned }, { "partly", make_partly },
		{ "mmap", make_mmap },	   { "file", make_file },     { "tmpfs", make_tmpfs },
		{ "stacks", make_stacks }, { "blocks", make_blocks },
	};
	uint64_t before;

	directory = argc > 2 ? argv[2] : ".";
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (argc > 1 && !strcmp(argv[1], kinds[i].name))
			kinds[i].make();
	puts("ready");
	fflush(stdout);
	for (;;) {
		char line[64];

		idle();
		if (!fgets(line, sizeof(line), stdin))
			return 0;
		printf("live %llu\n", (unsigned long long)live);
		before = resident();
		if (!strcmp(line, "trim\n")) {
			malloc_trim(0);
			printf("trimmed %lld\n", (long long)(before - resident()));
		}
		fflush(stdout);
	}
}
