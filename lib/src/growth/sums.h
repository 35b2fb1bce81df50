/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Are the sums of the cgroups what they are taken for? Where a kernel keeps which sum is not told,
 * so they are compared once: the LRU lists hold the same pages as the sums of anonymous and of
 * shared memory, but for what is on its way to a list, locked files, and what is swapped.
 */
#ifndef MW_GROWTH_SUMS_H
#define MW_GROWTH_SUMS_H

#include <stdbool.h>
#include <stdint.h>

/* Pages, of the machine, that there must be for a comparison. */
#define MW_SUMS_PAGES 4096

/* Comparisons in a row that must fail: one may fall into the moment in which the kernel adds up. */
#define MW_SUMS_FAILURES 5

/**
 * struct mw_sums - what is compared; zero has compared nothing yet
 * @lru: pages on the LRU lists of all cgroups in this visit
 * @pages: the same by the sums
 * @compared: it is known whether they are about the same; nothing is compared any more
 * @failures: comparisons in a row that failed; what was read must not be used meanwhile
 */
struct mw_sums {
	uint64_t lru, pages;
	bool compared;
	uint32_t failures;
};

/* Begins a visit of all cgroups. */
void mw_sums_begin(struct mw_sums *sums);

void mw_sums_add(struct mw_sums *sums, uint64_t lru, uint64_t pages);

/* Ends the visit. Returns whether the sums are something else, which is told once. */
bool mw_sums_compare(struct mw_sums *sums);

#endif /* MW_GROWTH_SUMS_H */
