/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The profile file of this process: creating it, mapping it, and letting it grow. What is in
 * it is described in profile-format.h.
 */
#ifndef _MW_HEAP_PROFILE_H
#define _MW_HEAP_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile-format.h"

#define MW_PROFILE_KINDS 9 /* enum mw_heap_chunk_kind */

struct mw_profile {
	/* Never NULL: without a file, a page of private memory that nobody reads. */
	struct mw_heap_header *header;
	uint8_t *base;	   /* reserved addresses, file_max bytes; NULL: no file */
	uint64_t file_max; /* of the file */
	uint64_t file_end; /* where the next chunk begins */
	/* The chunks of each kind in order; an entry is complete before chunks[] counts it. */
	void *chunk[MW_PROFILE_KINDS][MW_HEAP_CHUNKS_MAX];
	uint32_t chunks[MW_PROFILE_KINDS];
	uint32_t chunk_count; /* entries of the directory */
	bool detached;	      /* see mw_profile_detach() */
};

extern struct mw_profile mw_profile __attribute__((visibility("hidden")));

/*
 * Creates the file and its header; no chunk yet. @parent_pid is 0 or the process from which
 * this one was forked. Returns 0 or a negative errno, and then there is no file.
 */
int mw_profile_create(uint32_t parent_pid);

/* Of the file. */
const char *mw_profile_path(void);

/* Gives the file its name: readers find it from now on. Returns 0 or a negative errno. */
int mw_profile_publish(void);

/* Removes a file that was not published. */
void mw_profile_abandon(void);

/*
 * Adds the chunks that a program of usual size needs, because the file will perhaps be out of
 * reach from now on.
 */
void mw_profile_provide(void);

/*
 * After a fork inside this library, which will return into what it was doing: it finds private
 * memory in the place of the file, and ends there. The profile does not grow any more.
 */
void mw_profile_detach(void);

/* After a fork: the file belongs to the parent; forget it. */
void mw_profile_forget(void);

/*
 * Adds one chunk of @kind. Caller holds the maintenance lock. Returns 0, or a negative errno if
 * the disk is full, the file has its maximum size, or the kind its share; header.limits says.
 */
int mw_profile_grow(enum mw_heap_chunk_kind kind);

/* Bytes that chunks of @kind have now. */
static inline uint64_t mw_profile_bytes(enum mw_heap_chunk_kind kind)
{
	return (uint64_t)__atomic_load_n(&mw_profile.chunks[kind], __ATOMIC_ACQUIRE) *
	       MW_HEAP_CHUNK_BYTES;
}

/* The byte at @offset of the array of @kind; it must be below mw_profile_bytes(). */
static inline void *mw_profile_at(enum mw_heap_chunk_kind kind, uint64_t offset)
{
	return (uint8_t *)mw_profile.chunk[kind][offset / MW_HEAP_CHUNK_BYTES] +
	       offset % MW_HEAP_CHUNK_BYTES;
}

/*
 * Takes @count elements of @size bytes from the array of @kind, all in one chunk; *@used counts
 * the elements that have been handed out. Grows the array if necessary and possible. Returns 0
 * and the index of the first element, or a negative errno.
 */
int mw_profile_reserve(enum mw_heap_chunk_kind kind, uint64_t *used, uint64_t count, size_t size,
		       uint64_t *ret_first);

static inline void mw_count(uint64_t *counter, uint64_t by)
{
	__atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

void mw_count_double(double *sum, double by);

/* Sets bits of header.limits. */
void mw_profile_limit(uint32_t bits);

#endif
