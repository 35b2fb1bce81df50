// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How long the C library's figures about its heap take, and with it how long they hold the lock of
 * an arena: a heap of 1 GB in some arenas, of which every second object is freed.
 *
 *	heap-figures ARENAS    prints the free chunks, and the CPU time of mallinfo2() and
 *malloc_info() for each arena in nanoseconds
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "selftests/prng.h"

#define HEAP_BYTES   (1ull << 30)
#define OBJECT_LEAST 1100 /* larger than what a thread keeps for itself */
#define OBJECT_MOST  4000
#define ARENAS_MOST  256
#define CALLS	     5

static pthread_barrier_t arenas_are_full;
static size_t arena_bytes;

static void *arena_fill(void *argument)
{
	size_t most = arena_bytes / OBJECT_LEAST, count = 0, used = 0;
	struct prng prng = { (size_t)argument + 1 };
	void **objects = calloc(most, sizeof(*objects));

	while (objects && used < arena_bytes && count < most) {
		size_t size = OBJECT_LEAST + prng_below(&prng, OBJECT_MOST - OBJECT_LEAST);

		objects[count++] = malloc(size);
		used += size;
	}
	for (size_t n = 0; n < count; n += 2)
		free(objects[n]);
	/* No other thread may take over the arena of one that has ended. */
	pthread_barrier_wait(&arenas_are_full);
	return NULL;
}

static unsigned long cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (unsigned long)now.tv_sec * 1000000000 + (unsigned long)now.tv_nsec;
}

static void call_mallinfo2(FILE *sink)
{
	(void)sink;
	mallinfo2();
}

static void call_malloc_info(FILE *sink)
{
	malloc_info(0, sink);
	fflush(sink);
}

/* The shortest of some calls: the rest is other work on the machine. */
static unsigned long call_ns(void (*call)(FILE *sink), FILE *sink)
{
	unsigned long least = ~0ul;

	for (int n = 0; n < CALLS; n++) {
		unsigned long begin = cpu_ns(), took;

		call(sink);
		took = cpu_ns() - begin;
		least = took < least ? took : least;
	}
	return least;
}

int main(int argc, char **argv)
{
	unsigned int arenas = argc > 1 ? (unsigned int)atoi(argv[1]) : 1;
	FILE *sink = fopen("/dev/null", "w");
	pthread_t threads[ARENAS_MOST];

	if (!sink || !arenas || arenas > ARENAS_MOST)
		return 1;
	mallopt(M_ARENA_MAX, (int)arenas + 1);
	arena_bytes = HEAP_BYTES / arenas;
	pthread_barrier_init(&arenas_are_full, NULL, arenas + 1);
	for (size_t n = 0; n < arenas; n++)
		if (pthread_create(&threads[n], NULL, arena_fill, (void *)n))
			return 1;
	pthread_barrier_wait(&arenas_are_full);
	for (size_t n = 0; n < arenas; n++)
		pthread_join(threads[n], NULL);
	printf("%zu %lu %lu\n", mallinfo2().ordblks, call_ns(call_mallinfo2, sink) / arenas,
	       call_ns(call_malloc_info, sink) / arenas);
	return 0;
}
