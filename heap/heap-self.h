/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * For programs that control their own heap profile. The functions are in libmemwatch-heap.so,
 * which is preloaded and never linked, so the references are weak: without the profiler the
 * functions are NULL, and the inline wrappers return -ENOSYS.
 *
 *	#include <memwatch/heap-self.h>
 *
 *	memwatch_heap_self_start(0);
 */
#ifndef _MEMWATCH_HEAP_SELF_H
#define _MEMWATCH_HEAP_SELF_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

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

int memwatch_heap_self_control(int start, uint64_t rate) __attribute__((weak));
int memwatch_heap_self_copy(void) __attribute__((weak));
int memwatch_heap_self_read(struct memwatch_heap_self_stats *stats) __attribute__((weak));

/*
 * Starts sampling, with one sample in @rate bytes on average, or with the configured rate if that
 * is 0. Returns 0, or -ENOSYS without the profiler, or -ENODEV if it has no profile here, or -EBUSY
 * in a signal handler that has interrupted the profiler.
 */
static inline int memwatch_heap_self_start(uint64_t rate)
{
	return memwatch_heap_self_control ? memwatch_heap_self_control(1, rate) : -ENOSYS;
}

/* Stops sampling. Frees of samples are still tracked. Returns as above. */
static inline int memwatch_heap_self_stop(void)
{
	return memwatch_heap_self_control ? memwatch_heap_self_control(0, 0) : -ENOSYS;
}

/*
 * Copies the profile to COMM.PID-NNNN.mwheap beside it, before it returns. Returns as above, or
 * -EIO if the copy could not be written.
 */
static inline int memwatch_heap_self_snapshot(void)
{
	return memwatch_heap_self_copy ? memwatch_heap_self_copy() : -ENOSYS;
}

/* Fills in as many fields as @stats->size has room for. Returns as above. */
static inline int memwatch_heap_self_stats(struct memwatch_heap_self_stats *stats)
{
	return memwatch_heap_self_read ? memwatch_heap_self_read(stats) : -ENOSYS;
}

#ifdef __cplusplus
}
#endif

#endif
