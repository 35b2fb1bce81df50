/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The filter in front of free(): one counter for each 16 bytes of address, modulo 16 MiB. A
 * counter that is 0 proves that no live sample is there, and almost all counters are 0.
 *
 * Compared with a Bloom filter, addresses that are freed leave it again, so it neither saturates
 * nor has to be rebuilt while others use it; it is tested with one load; and neighbouring
 * addresses share cache lines, as they do in the heap. docs/heap.md has the measurements.
 */
#ifndef _MW_HEAP_FILTER_H
#define _MW_HEAP_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#define MW_FILTER_BITS	20
#define MW_FILTER_SHIFT 4

extern uint8_t mw_filter[1u << MW_FILTER_BITS] __attribute__((visibility("hidden")));

static inline uint32_t mw_filter_cell(const void *address)
{
	return (uint32_t)((uintptr_t)address >> MW_FILTER_SHIFT) & ((1u << MW_FILTER_BITS) - 1);
}

/* False: @address is not a live sample. True: it may be one. */
static inline bool mw_filter_may_have(const void *address)
{
	/* A plain load of a byte, because compilers make two instructions of an atomic one. */
	return mw_filter[mw_filter_cell(address)] != 0;
}

void mw_filter_add(const void *address);
void mw_filter_remove(const void *address);

/* How many live samples may be at @address. */
static inline uint8_t mw_filter_count(const void *address)
{
	return __atomic_load_n(&mw_filter[mw_filter_cell(address)], __ATOMIC_ACQUIRE);
}

/* Adds one to all counters, so that everything passes, and takes it off again. */
void mw_filter_raise(void);
void mw_filter_lower(void);

/* Forgets all samples; in a forked child, which has none. */
void mw_filter_clear(void);

#endif
