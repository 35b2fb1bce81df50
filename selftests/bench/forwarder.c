// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The least that a preloaded library can do: call the next malloc() and free(). heap.bench
 * compares the heap profiler with it.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

void *malloc(size_t size);
void free(void *address);

static void *first_malloc(size_t size);
static void first_free(void *address);

static void *(*next_malloc)(size_t size) = first_malloc;
static void (*next_free)(void *address) = first_free;

static void next_find(void)
{
	void *found = dlsym(RTLD_NEXT, "malloc");

	memcpy(&next_malloc, &found, sizeof(found));
	found = dlsym(RTLD_NEXT, "free");
	memcpy(&next_free, &found, sizeof(found));
}

static void *first_malloc(size_t size)
{
	next_find();
	return next_malloc(size);
}

static void first_free(void *address)
{
	next_find();
	next_free(address);
}

/* A call and a return, as a wrapper has them that does something afterwards. */
__attribute__((visibility("default"))) void *malloc(size_t size)
{
	void *volatile memory = next_malloc(size);

	return memory;
}

__attribute__((visibility("default"))) void free(void *address)
{
	next_free(address);
	__asm__ volatile("");
}
