/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The map from the address of a live sample to its slot in the profile. It is private memory:
 * readers of the profile do not need it. Lock-free; every operation is bounded.
 *
 * An address can be in one of two buckets of eight keys, in each of a few tables of growing
 * size. There is no chain of probes, so removing a key only clears its place: no tombstones
 * collect, and a lookup that finds nothing reads two cache lines per table. The tombstones
 * of open addressing would either fill the table or need to be cleaned up while it is used.
 *
 * The two low bits of a key, which are 0 in every address, hold its state. While a key is HELD
 * (its sample is being made, or its rate is being raised), a free that comes in between
 * leaves the mark DOOMED and goes on; the holder then removes the sample.
 */
#ifndef _MW_HEAP_INDEX_H
#define _MW_HEAP_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#define MW_INDEX_HELD	1u
#define MW_INDEX_DOOMED 2u
#define MW_INDEX_STATE	7u

/* Where a key is, for whoever holds it. */
struct mw_index_place {
	uint64_t *key;
	uint32_t *slot;
};

enum mw_index_result {
	MW_INDEX_ABSENT = 0,
	MW_INDEX_FOUND = 1,
	MW_INDEX_DEFERRED = 2, /* the key was held; its holder removes it */
};

/* Claims a place for @address and holds it. Returns 0, or -ENOSPC if the buckets are full. */
int mw_index_claim(uint64_t address, struct mw_index_place *ret);

/* Ends a claim or a hold. False if the address was freed meanwhile; then the place is empty. */
bool mw_index_release(const struct mw_index_place *place, uint64_t address, uint32_t slot);

/* Gives up a claim. */
void mw_index_abandon(const struct mw_index_place *place);

/* Removes @address and returns its slot. */
enum mw_index_result mw_index_take(uint64_t address, uint32_t *ret_slot);

/* Holds @address, if it is there and not held; *ret->slot is its slot then. */
bool mw_index_hold(uint64_t address, struct mw_index_place *ret);

/* Adds the next larger table. Caller holds the maintenance lock. Returns 0 or a negative errno. */
int mw_index_grow(void);

/* Forgets everything, and leaves the memory to the process; only while no other thread runs. */
void mw_index_clear(void);

#endif
