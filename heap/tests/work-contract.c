// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Programs that rely on what the C library promises of malloc() and free(), beyond the memory.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
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
