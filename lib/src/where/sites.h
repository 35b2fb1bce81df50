/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * From sampled stacks to the function that most of them name.
 */
#ifndef MW_WHERE_SITES_H
#define MW_WHERE_SITES_H

#include "heap/model.h"

/**
 * struct mw_site - the function that most of the weight is from
 * @view: owned
 * @row: the call stack in @view that has the most of it
 * @first: its frame that names the function; those before are of the C library or an allocator
 * @frames: number of frames
 * @samples: samples that name the function
 * @share: of the weight of all samples, from 0 to 1
 */
struct mw_site {
	struct memwatch_heap_view *view;
	uint32_t row, first, frames;
	uint32_t samples;
	double share;
};

/*
 * @heap has one profile, whose samples have the weight in MEMWATCH_HEAP_LIVE_BYTES. Returns 0,
 * -ENODATA if there is no sample, or -ENOMEM. The caller calls mw_site_uninit() in all cases.
 */
int mw_site_find(struct memwatch_heap *heap, struct mw_site *ret);
void mw_site_uninit(struct mw_site *site);

#endif /* MW_WHERE_SITES_H */
