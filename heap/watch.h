/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The objects of which it is known when they were touched last.
 *
 * The pages of each are a mapping of their own for the kernel, because they are advised as memory
 * that is accessed in random order. For anonymous memory, that only means that reclaim takes no
 * notice of accesses to them (since Linux 6.3), so nobody but this library clears their accessed
 * bits. MADV_COLD clears them, and /proc/self/smaps tells the sum of them for each mapping. The
 * memory itself, and who may access it, never changes; so nothing here can harm the program, if
 * it is done to memory that has become another object's in between.
 */
#ifndef _MW_HEAP_WATCH_H
#define _MW_HEAP_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "interval.h"
#include "isolate.h"
#include "samples.h"

/* The pages of a watch. */
struct mw_watch_pages {
	uint64_t begin;
	uint64_t end;
	uint32_t number;     /* of the watch */
	uint64_t generation; /* which of its uses this is */
};

/* For a new profile: adds room for watches to it. Caller holds the maintenance lock. */
void mw_watch_prepare(void);

/*
 * Begins to watch an object that was chosen with the odds of @shift. Returns what becomes
 * sample.watch; 0 if it cannot be watched and has no block.
 */
uint16_t mw_watch_begin(const struct mw_sample_birth *birth, uint32_t shift,
			struct mw_random *random);

/* The object of a sample is being freed. @watch may be 0, or that of another sample by now. */
void mw_watch_end(uint16_t watch, uint64_t address, uint64_t size);

/* The object lives on, and keeps its block, but is not watched any more. */
void mw_watch_stop(uint16_t watch, uint64_t address);

/* Writes the pages of all watches to @pages, which has room for MW_ISOLATE_MAX, sorted. */
uint32_t mw_watch_list(struct mw_watch_pages *pages);

/* These pages were touched between two times. */
void mw_watch_touched(const struct mw_watch_pages *pages, uint64_t after_ns, uint64_t ns);

/* Nothing can be seen of these pages any more. */
void mw_watch_lose(const struct mw_watch_pages *pages);

/* If there are few watches and few samples, new ones are chosen more often. At an epoch's end. */
void mw_watch_relax(uint64_t now);

/* After a fork: the watches are the parent's. Only while no other thread runs. */
void mw_watch_forget(void);

#endif
