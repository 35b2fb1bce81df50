/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Converts between bytes and the pages of the detectors, which have 4 KiB.
 */
#ifndef MW_GROWTH_PAGES_H
#define MW_GROWTH_PAGES_H

#include <stdint.h>

#include "bpf/growth.h"

/* Rounds down. Saturates below MW_GROWTH_NO_LIMIT, so that a large number is a number. */
static inline uint32_t mw_pages_from_bytes(uint64_t bytes)
{
	uint64_t pages = bytes >> MW_GROWTH_PAGE_SHIFT;

	return pages >= MW_GROWTH_NO_LIMIT ? MW_GROWTH_NO_LIMIT - 1 : (uint32_t)pages;
}

static inline uint64_t mw_bytes_from_pages(uint32_t pages)
{
	return (uint64_t)pages << MW_GROWTH_PAGE_SHIFT;
}

#endif /* MW_GROWTH_PAGES_H */
