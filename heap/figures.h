/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the allocator says about itself, taken now and then on the sampling path.
 */
#ifndef _MW_HEAP_FIGURES_H
#define _MW_HEAP_FIGURES_H

#include <stdint.h>

/* Called with each sample: takes the figures if it is time. The thread is busy. */
void mw_figures_follow(uint64_t now);

/* After a fork. */
void mw_figures_clear(void);

#endif
