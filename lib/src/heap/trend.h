/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How fast the live bytes of each row grow over the snapshots of a process.
 */
#ifndef MW_HEAP_TREND_H
#define MW_HEAP_TREND_H

#include "heap/rows.h"

struct mw_trend {
	struct memwatch_heap_estimate per_hour; /* bytes */
	bool leak;
};

/*
 * Allocates one element for each row and one more for all rows together. Rows must exist for
 * the stacks of all profiles of the heap, which are in the order of their times. Returns 0;
 * -ENODATA if there are no two profiles with different times; -ENOMEM. The caller frees @ret
 * with free().
 */
int mw_trend_new(const struct mw_heap_rows *rows, struct mw_trend **ret);

#endif /* MW_HEAP_TREND_H */
