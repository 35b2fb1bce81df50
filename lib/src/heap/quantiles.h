/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Median and 90th percentile of the ages and lifetimes of the samples of each row.
 */
#ifndef MW_HEAP_QUANTILES_H
#define MW_HEAP_QUANTILES_H

#include "heap/rows.h"

enum mw_quantile { MW_QUANTILE_MEDIAN, MW_QUANTILE_P90, MW_QUANTILES };

/* Of one row; NaN if there are no samples. */
struct mw_quantiles {
	double age[MW_QUANTILES];
	double lifetime[MW_QUANTILES];
};

/*
 * Allocates one element for each row and one more for all rows together. Returns 0 or
 * -ENOMEM; the caller frees @ret with free().
 */
int mw_quantiles_new(const struct mw_heap_rows *rows, const struct mw_prof_profile *profile,
		     struct mw_quantiles **ret);

#endif /* MW_HEAP_QUANTILES_H */
