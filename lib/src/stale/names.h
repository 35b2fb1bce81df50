/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The names of sites that are stacks of a heap profile, and of the places of accesses.
 */
#ifndef MW_STALE_NAMES_H
#define MW_STALE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <memwatch/heap.h>

#include "stale/charges.h"

struct mw_site_names;

/**
 * struct mw_place_stacks - the places of accesses as stacks of a heap; zero has none
 * @heap: which heap
 * @stacks: number of the stack of each place; owned
 * @count: number of places
 */
struct mw_place_stacks {
	const struct memwatch_heap *heap;
	uint32_t *stacks;
	uint32_t count;
};

/*
 * Adds the instructions of all accesses to @heap, whose first profile is that of the process, so
 * that their symbols can be found. Returns 0 or -ENOMEM; the caller frees @ret->stacks in any case.
 */
int mw_place_stacks_add(struct mw_place_stacks *ret, struct memwatch_heap *heap,
			const struct mw_charges *charges);

/*
 * Names all stacks of the first profile of @heap, and the places, if they are in it. @heap and
 * @charges must live as long as the names. Returns 0 or -ENOMEM.
 */
int mw_site_names_new(const struct memwatch_heap *heap, const struct mw_place_stacks *places,
		      struct mw_site_names **ret);

/* @names or NULL. */
void mw_site_names_free(struct mw_site_names *names);

/* The name of stack or place @number; "" if the profile does not have it. */
const char *mw_site_names_text(const struct mw_site_names *names, uint64_t number);

/* Frame @frame of a stack, innermost first. Returns false if there are not so many. */
bool mw_site_names_frame(const struct mw_site_names *names, uint64_t stack, uint32_t frame,
			 struct memwatch_heap_frame *ret);

#endif /* MW_STALE_NAMES_H */
