/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Where a growing process takes its memory, without a heap profile: the functions that the growth
 * monitor has seen most in samples of its stacks, since its notice.
 *
 * TOUCHED. One in N page faults is sampled, and of the samples those count whose page is still
 * there. A page is touched first by the function that got it, or by the allocator in its name;
 * which function holds on to it is not known.
 *
 * ASKED. Calls of brk() and mmap() are sampled. Memory that the allocator had already is not asked
 * for, so this says less about small objects.
 *
 * The callers are found by the unwind tables of programs and libraries, so no frame pointers are
 * needed. A function that has no symbol is an address in its module.
 */
#ifndef MEMWATCH_WHERE_H
#define MEMWATCH_WHERE_H

#include <stddef.h>

#include <memwatch/heap.h>
#include <memwatch/watch.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * enum memwatch_where_kind - how memory was taken
 * @MEMWATCH_WHERE_TOUCHED: pages that were touched first
 * @MEMWATCH_WHERE_ASKED: bytes that the kernel was asked for
 */
enum memwatch_where_kind {
	MEMWATCH_WHERE_TOUCHED = 0,
	MEMWATCH_WHERE_ASKED = 1,
};

/**
 * struct memwatch_where - a search for the functions
 */
struct memwatch_where;

/**
 * memwatch_watch_where - begin to find out where a process takes its memory
 * @watch: monitor
 * @tgid: process id
 * @start_time_ns: start time of the process, as in the records
 * @ret: the search; caller frees with memwatch_where_unref()
 *
 * A child process unwinds the samples and finds symbols, with the files that the process has
 * mapped, also if it is in a container. The child opens the files, and then gives up its
 * privileges. Its end raises SIGCHLD.
 *
 * Returns: 0; -ENODATA, the process has no notice, has a heap profile, or had no place among
 * those that are sampled, or there is no sample yet; any errno of fork(); -ENOMEM. Of a process
 * that has just ended, the functions may have no names.
 * Since: 0.1
 */
int memwatch_watch_where(struct memwatch_watch *watch, __u32 tgid, __u64 start_time_ns,
			 struct memwatch_where **ret);

/**
 * memwatch_where_unref - end the search and free
 * @where: search or NULL
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_where *memwatch_where_unref(struct memwatch_where *where);

/**
 * memwatch_where_poll - ask whether the search is complete, without waiting
 * @where: search
 *
 * Returns: 1, it is; 0, not yet; -ENODATA, nothing was found; -EBADMSG, the child failed; -ENOMEM.
 * Since: 0.1
 */
int memwatch_where_poll(struct memwatch_where *where);

/**
 * struct memwatch_where_site - the function that most samples name
 * @sz: in: sizeof(struct memwatch_where_site)
 * @frames: number of frames of the call stack with which it is named most
 * @first: the frame of the function: those before are of the C library or of an allocator
 * @samples: samples that name the function
 * @of_samples: all samples of this kind
 * @share: share of the pages or bytes, from 0 to 1, that the samples that name it stand for
 */
struct memwatch_where_site {
	size_t sz;
	__u32 frames;
	__u32 first;
	__u32 samples;
	__u32 of_samples;
	double share;
};

/**
 * memwatch_where_get_site - get the function
 * @where: search that is complete
 * @kind: &enum memwatch_where_kind
 * @ret: filled in up to ret->sz
 *
 * Returns: 1; 0 if there are no samples of this kind; -EINVAL.
 * Since: 0.1
 */
int memwatch_where_get_site(const struct memwatch_where *where, unsigned int kind,
			    struct memwatch_where_site *ret);

/**
 * memwatch_where_get_frame - get a frame of its call stack
 * @where: search that is complete
 * @kind: &enum memwatch_where_kind
 * @frame: number of the frame; 0 is the innermost function
 * @ret: filled in up to ret->sz; strings belong to @where
 *
 * Returns: 1; 0 if there are not so many frames; or -EINVAL.
 * Since: 0.1
 */
int memwatch_where_get_frame(const struct memwatch_where *where, unsigned int kind, __u32 frame,
			     struct memwatch_heap_frame *ret);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_WHERE_H */
