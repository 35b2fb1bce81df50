/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The next definitions of the functions that this library interposes: those of the C library, or
 * of an allocator that is loaded behind it. They are looked up at the first call, because other
 * libraries allocate before this one is initialised.
 */
#ifndef _MW_HEAP_NEXT_H
#define _MW_HEAP_NEXT_H

#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "profile-format.h"

struct mw_next {
	void *(*malloc)(size_t size);
	void (*free)(void *address);
	void *(*calloc)(size_t count, size_t size);
	void *(*realloc)(void *address, size_t size);
	/* The one that the program calls: its own if it has one, otherwise that of this library. */
	void *(*front_realloc)(void *address, size_t size);
	int (*posix_memalign)(void **ret, size_t alignment, size_t size);
	void *(*aligned_alloc)(size_t alignment, size_t size);
	void *(*memalign)(size_t alignment, size_t size);
	void *(*valloc)(size_t size);
	void *(*pvalloc)(size_t size);
	void (*free_sized)(void *address, size_t size);				  /* may be NULL */
	void (*free_aligned_sized)(void *address, size_t alignment, size_t size); /* may be NULL */
	size_t (*malloc_usable_size)(void *address);				  /* may be NULL */
	int (*dlclose)(void *handle);
	int (*pthread_getattr_np)(pthread_t thread, pthread_attr_t *ret);
	pid_t (*_Fork)(void); /* may be NULL */
	/* NULL: nothing is looked up yet, or there is none. */
	int (*setuid)(uid_t uid);
	int (*seteuid)(uid_t uid);
	int (*setreuid)(uid_t real, uid_t effective);
	int (*setresuid)(uid_t real, uid_t effective, uid_t saved);
	int (*chroot)(const char *path);
	void *(*mmap)(void *address, size_t size, int protection, int flags, int fd, off_t offset);
	int (*munmap)(void *address, size_t size);
	void *(*mremap)(void *address, size_t old_size, size_t size, int flags, ...);
	struct mallinfo2 (*mallinfo2)(void); /* NULL if malloc is not the C library's */
	enum mw_heap_allocator allocator;
	void *allocator_map; /* link map of the object that has malloc; NULL: not known */
	/* The last of the objects that are loaded from the start, which stay loaded. */
	const struct link_map *last_map;
};

extern struct mw_next mw_next __attribute__((visibility("hidden")));

/*
 * Looks everything up; returns at once when called again. False if this thread is looking things
 * up at this moment. Ends the program if it has no malloc.
 */
bool mw_next_resolve(void);

/* Is @pc in the object that has the next malloc? */
bool mw_next_is_allocator(const void *pc);

#endif
