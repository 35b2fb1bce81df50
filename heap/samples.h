/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The live samples in the profile, and the sums that go with them.
 */
#ifndef _MW_HEAP_SAMPLES_H
#define _MW_HEAP_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "interval.h"
#include "profile-format.h"

/* What is known about an allocation when it is sampled. */
struct mw_sample_birth {
	uint64_t address;
	uint64_t size;
	uint64_t rate;
	uint64_t time_ns;
	uint32_t stack;
	uint32_t tid;
	enum mw_heap_source source;
	uint16_t watch; /* of mw_watch_begin() */
	uint32_t guard; /* of mw_isolate_allocate() */
};

/*
 * Records a live sample. If the table is full, it is thinned out first. False if there was no
 * room; the sample is counted as lost.
 */
bool mw_sample_add(const struct mw_sample_birth *birth);

/* The object at @address is being freed. True if it was a sample. */
bool mw_sample_free(const void *address);

/*
 * The same for realloc(), which may fail: takes the sample out of the map and returns its
 * slot, to be freed or restored when the result is known. False if @address is no sample.
 */
bool mw_sample_detach(const void *address, uint32_t *ret_slot);
void mw_sample_detached_free(uint32_t slot);
void mw_sample_detached_restore(uint32_t slot);

/* The object lives on, and is not tracked any more: the sample is counted as lost. */
void mw_sample_detached_lose(uint32_t slot);

/*
 * The same for a mapping of which a part is left: keeps the sample with the odds that a mapping
 * of that size has to be sampled. False if it is gone.
 */
bool mw_sample_detached_shrink(uint32_t slot, uint64_t address, uint64_t size,
			       struct mw_random *random);

/* After a fork. */
void mw_samples_clear(void);

#endif
