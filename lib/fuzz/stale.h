/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads all results of a trace that was judged.
 */
#ifndef FUZZ_STALE_H
#define FUZZ_STALE_H

#include "stale/stale.h"

static inline void read_results(struct memwatch_stale *stale)
{
	MEMWATCH_OPTS(memwatch_stale_distribution, distribution);
	MEMWATCH_OPTS(memwatch_heap_frame, frame);
	MEMWATCH_OPTS(memwatch_stale_object, object);
	MEMWATCH_OPTS(memwatch_stale_place, place);
	MEMWATCH_OPTS(memwatch_stale_point, point);
	MEMWATCH_OPTS(memwatch_stale_site, site);

	for (uint32_t i = 0; memwatch_stale_get_site(stale, i, &site) == 1; i++) {
		memwatch_stale_get_distribution(stale, i, &distribution);
		for (uint32_t list = 0; list < 2; list++)
			for (uint32_t n = 0;
			     memwatch_stale_get_place(stale, list, i, n, &place) == 1; n++)
				;
		for (uint32_t n = 0; memwatch_stale_get_point(stale, i, n, &point) == 1; n++)
			;
		for (uint32_t n = 0; memwatch_stale_get_frame(stale, i, n, &frame) == 1; n++)
			;
	}
	for (uint64_t i = 0; memwatch_stale_get_object(stale, i, &object) == 1; i++)
		for (uint32_t n = 0; memwatch_stale_get_place(stale, MEMWATCH_STALE_OBJECT_ACCESS,
							      i, n, &place) == 1;
		     n++)
			;
}

#endif /* FUZZ_STALE_H */
