/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The rows that leak. A leak can be spread over many call stacks, of which none grows enough to be
 * told from chance, when what they have in common does.
 */
#ifndef MW_HEAP_LEAKS_H
#define MW_HEAP_LEAKS_H

#include "heap/trend.h"

/*
 * Allocates the trend of each row, and one more for all rows together. Sites that leak together
 * become one row, of the frames that they have in common. Rows must exist for the stacks of all
 * profiles of the heap. Returns 0 or what mw_curves_init() says. The caller frees @ret with free().
 */
int mw_leaks_find(struct mw_heap_rows *rows, struct mw_trend **ret);

#endif /* MW_HEAP_LEAKS_H */
