/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * From sums and variances to intervals of 95 %.
 */
#ifndef MW_HEAP_ESTIMATE_H
#define MW_HEAP_ESTIMATE_H

#include <stdbool.h>

#include "heap/model.h"

/* The interval of a sum of samples. If the sampling rate is not @known, its ends are NaN. */
struct memwatch_heap_estimate mw_estimate_sum(struct mw_prof_sum sum, bool known);

/* The interval of a difference of sums. */
struct memwatch_heap_estimate mw_estimate_change(double value, double variance, bool known);

/* The interval is value +- error. */
struct memwatch_heap_estimate mw_estimate_around(double value, double error);

/* The quantile @p of the normal distribution, and of Student's t with @df degrees of freedom. */
double mw_quantile_normal(double p);
double mw_quantile_t(double p, unsigned int df);

#endif /* MW_HEAP_ESTIMATE_H */
