/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How much of the live bytes of each row was touched not long ago, from the samples that are
 * watched for accesses.
 */
#ifndef MW_HEAP_TOUCHED_H
#define MW_HEAP_TOUCHED_H

#include "heap/rows.h"

/* Of one row. */
struct mw_touched {
	struct memwatch_heap_estimate window[MEMWATCH_HEAP_WINDOWS]; /* NaN: not known */
	uint64_t watched;
	uint64_t parts;
};

/*
 * Allocates one element for each row and one more for all rows together. Returns 0 or
 * -ENOMEM; the caller frees @ret with free().
 */
int mw_touched_new(const struct mw_heap_rows *rows, const struct mw_prof_profile *profile,
		   struct mw_touched **ret);

#endif /* MW_HEAP_TOUCHED_H */
