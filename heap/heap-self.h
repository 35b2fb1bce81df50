/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * For programs that control their own heap profile. The functions are in libmemwatch-heap.so,
 * which is preloaded and never linked, so the inline wrappers look them up, and return -ENOSYS
 * without the profiler. With a C library before glibc 2.34, the program is linked with -ldl.
 *
 *	#include <memwatch/heap-self.h>
 *
 *	memwatch_heap_self_start(0);
 */
#ifndef _MEMWATCH_HEAP_SELF_H
#define _MEMWATCH_HEAP_SELF_H

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Estimates, in bytes unless the name says otherwise. */
struct memwatch_heap_self_stats {
	uint64_t size;	  /* sizeof(struct memwatch_heap_self_stats), set by the caller */
	uint64_t rate;	  /* 0: not sampling */
	uint64_t samples; /* sampled allocations so far */
	uint64_t live_samples;
	uint64_t live_bytes;
	uint64_t allocated_bytes;
	uint64_t freed_bytes;
	uint64_t lost_samples;
};

/* What the wrappers call. */
int memwatch_heap_self_control(int start, uint64_t rate);
int memwatch_heap_self_copy(void);
int memwatch_heap_self_read(struct memwatch_heap_self_stats *stats);

/*
 * Not by weak references: linkers resolve these to NULL for good in a program that is linked to a
 * fixed address. RTLD_DEFAULT is NULL, and has this name only with _GNU_SOURCE.
 */
static inline void memwatch_heap_self_find(const char *name, void *ret_function)
{
	void *found = dlsym(NULL, name);

	memcpy(ret_function, &found, sizeof(found));
}

static inline int memwatch_heap_self_request(int start, uint64_t rate)
{
	int (*function)(int, uint64_t);

	memwatch_heap_self_find("memwatch_heap_self_control", &function);
	return function ? function(start, rate) : -ENOSYS;
}

/*
 * Starts sampling, with one sample in @rate bytes on average, or with the configured rate if that
 * is 0. Returns 0, or -ENOSYS without the profiler, or -ENODEV if it has no profile here, or -EBUSY
 * in a signal handler that has interrupted the profiler.
 */
static inline int memwatch_heap_self_start(uint64_t rate)
{
	return memwatch_heap_self_request(1, rate);
}

/* Stops sampling. Frees of samples are still tracked. Returns as above. */
static inline int memwatch_heap_self_stop(void)
{
	return memwatch_heap_self_request(0, 0);
}

/*
 * Copies the profile to COMM.PID-NNNN.mwheap beside it, before it returns. Returns as above, or
 * -EIO if the copy could not be written.
 */
static inline int memwatch_heap_self_snapshot(void)
{
	int (*function)(void);

	memwatch_heap_self_find("memwatch_heap_self_copy", &function);
	return function ? function() : -ENOSYS;
}

/* Fills in as many fields as @stats->size has room for. Returns as above. */
static inline int memwatch_heap_self_stats(struct memwatch_heap_self_stats *stats)
{
	int (*function)(struct memwatch_heap_self_stats *);

	memwatch_heap_self_find("memwatch_heap_self_read", &function);
	return function ? function(stats) : -ENOSYS;
}

#ifdef __cplusplus
}
#endif

#endif
