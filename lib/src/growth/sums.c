// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The comparison of sums, see sums.h.
 */
#include "growth/sums.h"

void mw_sums_begin(struct mw_sums *sums)
{
	sums->lru = sums->pages = 0;
}

void mw_sums_add(struct mw_sums *sums, uint64_t lru, uint64_t pages)
{
	sums->lru += lru;
	sums->pages += pages;
}

static bool sums_agree(const struct mw_sums *sums)
{
	return sums->pages > sums->lru / 2 && sums->pages / 2 < sums->lru;
}

bool mw_sums_compare(struct mw_sums *sums)
{
	bool enough = sums->lru >= MW_SUMS_PAGES, wrong;

	if (sums->compared)
		return false;
	if (!enough || sums_agree(sums)) {
		sums->compared = enough;
		sums->failures = 0;
		return false;
	}
	wrong = ++sums->failures >= MW_SUMS_FAILURES;
	if (wrong) {
		sums->compared = true;
		sums->failures = 0;
	}
	return wrong;
}
