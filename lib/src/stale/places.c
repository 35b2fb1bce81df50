// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Counts of places.
 */
#include "stale/places.h"

#include <stdlib.h>

#include "base/array.h"

/* A place that is counted moves one to the front, so that a frequent one is found at once. */
static void count_known(struct mw_places *places, uint32_t i)
{
	struct mw_place *at = places->list + i;

	at->count++;
	if (i && at->count > at[-1].count) {
		struct mw_place before = at[-1];

		at[-1] = *at;
		*at = before;
	}
}

int mw_places_count(struct mw_places *places, uint32_t name)
{
	for (uint32_t i = 0; i < places->count; i++) {
		if (places->list[i].name == name) {
			count_known(places, i);
			return 0;
		}
	}
	if (places->count == MW_PLACES_MAX) {
		places->others++;
		return 0;
	}
	if (mw_array_reserve(places->list, places->capacity, places->count + 1U))
		return -ENOMEM;
	places->list[places->count++] = (struct mw_place){ .name = name, .count = 1 };
	return 0;
}

static int compare_places(const void *a, const void *b)
{
	const struct mw_place *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

void mw_places_sort(struct mw_places *places)
{
	if (places->count)
		qsort(places->list, places->count, sizeof(*places->list), compare_places);
}

void mw_places_uninit(struct mw_places *places)
{
	free(places->list);
	*places = (struct mw_places){ 0 };
}
