/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How often something was done at which places of the program. Only the first MW_PLACES_MAX
 * places are told apart, the others are one sum.
 */
#ifndef MW_STALE_PLACES_H
#define MW_STALE_PLACES_H

#include <stdint.h>

#define MW_PLACES_MAX 64U

struct mw_place {
	uint32_t name; /* number of its name */
	uint64_t count;
};

/**
 * struct mw_places - the counts; zero is an empty one
 * @list: those that are counted often are near its start; owned
 * @count: number of places
 * @capacity: of @list
 * @others: count of all places that are not in @list
 */
struct mw_places {
	struct mw_place *list;
	uint32_t count, capacity;
	uint64_t others;
};

/* Returns 0 or -ENOMEM. */
int mw_places_count(struct mw_places *places, uint32_t name);

/* Brings the list into the order of counts, the highest first, and then of names. */
void mw_places_sort(struct mw_places *places);

void mw_places_uninit(struct mw_places *places);

#endif /* MW_STALE_PLACES_H */
