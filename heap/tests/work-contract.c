// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Programs that rely on what the C library promises of malloc() and free(), beyond the memory.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "heap/tests/work.h"

/* A program that hangs ends by SIGALRM. */
#define HANGS_SECONDS 60

/* The first allocation of a thread is made by the C library, which holds a lock of the thread. */
static void *bounds_thread(void *argument)
{
	pthread_attr_t attributes;
	size_t size = 0;
	void *low;

	(void)argument;
	if (!pthread_getattr_np(pthread_self(), &attributes)) {
		pthread_attr_getstack(&attributes, &low, &size);
		pthread_attr_destroy(&attributes);
	}
	work_allocate(10000);
	return (void *)size;
}

/* bounds: fails if a thread does not learn the bounds of its stack. */
int work_bounds(char **argv)
{
	void *size = NULL;
	pthread_t thread;

	(void)argv;
	alarm(HANGS_SECONDS);
	if (pthread_create(&thread, NULL, bounds_thread, NULL))
		return 1;
	pthread_join(thread, &size);
	return !size;
}

#define CANCEL_THREADS 4
#define CANCEL_SECONDS 2 /* figures of the allocator are taken after half a second */

static volatile unsigned int cancel_begun, cancel_ended;

/* It is cancelled while it runs, and malloc() is no cancellation point. */
static void *cancel_thread(void *argument)
{
	struct timespec begin, now;

	(void)argument;
	while (!cancel_begun)
		sched_yield();
	work_allocate(2000000);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		free(malloc(1000));
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - begin.tv_sec < CANCEL_SECONDS);
	__atomic_add_fetch(&cancel_ended, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* cancel: fails if a thread is cancelled in malloc() or in free(). */
int work_cancel(char **argv)
{
	pthread_t threads[CANCEL_THREADS];

	(void)argv;
	alarm(HANGS_SECONDS);
	for (int n = 0; n < CANCEL_THREADS; n++)
		if (pthread_create(&threads[n], NULL, cancel_thread, NULL))
			return 1;
	for (int n = 0; n < CANCEL_THREADS; n++)
		pthread_cancel(threads[n]);
	cancel_begun = 1;
	for (int n = 0; n < CANCEL_THREADS; n++)
		pthread_join(threads[n], NULL);
	return cancel_ended != CANCEL_THREADS;
}

#define ERRNO_DEPTH 13 /* 8192 call stacks */

static unsigned int errno_changes;

__attribute__((noipa)) static void free_left(void *memory, unsigned int path, int depth);

__attribute__((noipa)) static void free_right(void *memory, unsigned int path, int depth)
{
	if (depth) {
		(path & 1 ? free_left : free_right)(memory, path >> 1, depth - 1);
	} else {
		errno = EXDEV;
		free(memory);
		errno_changes += errno != EXDEV;
	}
	__asm__ volatile(""); /* no jump in place of the last call */
}

__attribute__((noipa)) static void free_left(void *memory, unsigned int path, int depth)
{
	free_right(memory, path, depth);
	__asm__ volatile("");
}

/*
 * errno DIRECTORY: frees from many call stacks while the directory of the profile has another name.
 * Fails if free() changes errno.
 */
int work_errno(char **argv)
{
	char away[PATH_MAX];

	snprintf(away, sizeof(away), "%s.away", argv[0]);
	if (rename(argv[0], away))
		return 1;
	for (unsigned int path = 0; path < 1u << ERRNO_DEPTH; path++)
		free_left(malloc(100), path, ERRNO_DEPTH);
	return rename(away, argv[0]) || errno_changes;
}
