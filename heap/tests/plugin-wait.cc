// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A library whose constructor waits for a thread. dlopen() holds the lock of the dynamic linker
 * while it runs constructors.
 */
#include <pthread.h>
#include <unistd.h>

#ifdef WAIT_PRIVILEGES
static void *thread_work(void *)
{
	static int done;

	return seteuid(geteuid()) ? nullptr : &done;
}
#else
static void *thread_work(void *)
{
	return new int(7);
}
#endif

static void *result;

static struct waiting {
	waiting()
	{
		pthread_t thread;

		if (!pthread_create(&thread, nullptr, thread_work, nullptr))
			pthread_join(thread, &result);
	}
} waiting;

extern "C" int plugin_check(int)
{
	return !result;
}
