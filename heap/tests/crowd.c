// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * crowd THREADS PAIRS: threads that live at the same time, each with so many objects. The tests
 * profile it. It is not a part of work.c, whose static variables of a thread take much memory.
 */
#include <pthread.h>
#include <stdlib.h>

#include "heap/tests/work.h"

#define THREADS_MAX 5000
#define STACK_BYTES (128u << 10)

static int pairs;
static pthread_barrier_t all_have_allocated;

/* No thread may end, and leave what it has to another one, before all have allocated. */
static void *crowd_thread(void *argument)
{
	void *volatile memory;

	(void)argument;
	for (int n = 0; n < pairs; n++) {
		memory = malloc(100);
		free(memory);
	}
	pthread_barrier_wait(&all_have_allocated);
	return NULL;
}

int main(int argc, char **argv)
{
	static pthread_t threads[THREADS_MAX];
	unsigned int count = argc > 1 ? (unsigned int)atoi(argv[1]) : 0;
	pthread_attr_t attributes;

	pairs = argc > 2 ? atoi(argv[2]) : 0;
	pthread_barrier_init(&all_have_allocated, NULL, count);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	for (unsigned int n = 0; n < count; n++)
		if (n == THREADS_MAX ||
		    pthread_create(&threads[n], &attributes, crowd_thread, NULL))
			exit(WORK_UNSUPPORTED);
	for (unsigned int n = 0; n < count; n++)
		pthread_join(threads[n], NULL);
	return 0;
}
