/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The units of the growth detectors and the values that mean "none". A page is 4 KiB
 * here, whatever the page size of the machine; times are nanoseconds of a monotonic
 * clock.
 */
#ifndef _MW_GROWTH_UNITS_H
#define _MW_GROWTH_UNITS_H

#include "growth-math.h"

#define MW_GROWTH_PAGE_SHIFT 12
#define MW_GROWTH_MIB	     (1U << (20 - MW_GROWTH_PAGE_SHIFT)) /* in pages */
#define MW_GROWTH_SECOND     1000000000ULL			 /* in nanoseconds */

#define MW_GROWTH_NO_LIMIT   (~0U) /* headroom in pages: there is no limit */
#define MW_GROWTH_NEVER	     (~0U) /* seconds to a limit: it will not be reached */
#define MW_GROWTH_MISSING    (~0U) /* minimum of a bin: the bin has no sample */

/* The most growth that is computed with, 256 GiB in pages: sums and products fit 64 bits. */
#define MW_GROWTH_MAX_D ((1U << 26) - 1)

#endif /* _MW_GROWTH_UNITS_H */
