// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Loading libraries.
 */
#include "base/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include "base/context.h"

static pthread_once_t lock_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock;

static void make_lock(void)
{
	pthread_mutex_init(&lock, NULL);
}

static int fail_load(struct memwatch_ctx *ctx, const struct mw_library *library, const char *what,
		     const char *why)
{
	if (!ctx)
		return -ELIBACC;
	return mw_fail(ctx, -ELIBACC, "%s needs %s, which cannot be loaded: %s; install %s", what,
		       library->soname, why ? why : "unknown error", library->package);
}

static int find_functions(struct memwatch_ctx *ctx, struct mw_library *library, const char *what)
{
	/* It is not closed again: an application may have the addresses of its data. */
	void *handle = dlopen(library->soname, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return fail_load(ctx, library, what, dlerror());
	for (size_t i = 0; i < library->count; i++) {
		library->table[i] = dlsym(handle, library->names[i]);
		if (!library->table[i])
			return fail_load(ctx, library, what, dlerror());
	}
	__atomic_store_n(&library->loaded, true, __ATOMIC_RELEASE);
	return 0;
}

int mw_library_load(struct memwatch_ctx *ctx, struct mw_library *library, const char *what)
{
	int err = 0;

	/* A child process must not wait for a lock that a thread of its parent had. */
	if (__atomic_load_n(&library->loaded, __ATOMIC_ACQUIRE))
		return 0;
	pthread_once(&lock_once, make_lock);
	pthread_mutex_lock(&lock);
	if (!library->loaded)
		err = find_functions(ctx, library, what);
	pthread_mutex_unlock(&lock);
	return err;
}
