/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which pages of a process have been touched: what touch.bpf.c and the library share, and
 * the rule that says which pages are sampled.
 *
 * A 1 of 2^shift sample of all present pages is taken by their addresses. It is the same at each
 * visit, so that a page can be followed; and the sample of a larger shift is a part of that of a
 * smaller one, so that a process that grows can be sampled more coarsely without a new beginning.
 */
#ifndef _MW_TOUCH_H
#define _MW_TOUCH_H

#include "growth-maps.h"

/* How many pages of a suspect are looked at; a power of 2. */
#define MW_TOUCH_PAGES 4096U

/* A table of pages maps 2 MiB, and so does the entry of a huge page. */
#define MW_TOUCH_REGION_SHIFT 21U
#define MW_TOUCH_REGION_PAGES 512U

/* The lower bits of a page in &struct mw_touch_suspect; the upper ones are its address. */
#define MW_TOUCH_YOUNG	 1ULL  /* touched since its accessed bit was cleared */
#define MW_TOUCH_SWAPPED 2ULL  /* in swap, or being moved, or its memory is broken */
#define MW_TOUCH_HUGE	 4ULL  /* one of 2 MiB */
#define MW_TOUCH_SHARED	 8ULL  /* other processes map it too: its accessed bit cannot be cleared */
#define MW_TOUCH_NONE	 16ULL /* not a page of anonymous memory; never stored */
#define MW_TOUCH_ADDRESS (~0xfffULL)

/**
 * struct mw_touch_suspect - a process and the pages of the last visit, in order of address
 * @key: the process
 * @shift: 1 of 2^shift pages is sampled
 * @count: number of pages in @page
 * @missed: pages that had no room in @page
 * @visit: number of the last visit that found the process
 * @page: addresses and MW_TOUCH_*
 */
struct mw_touch_suspect {
	struct mw_growth_key key;
	__u32 shift;
	__u32 count;
	__u32 missed;
	__u32 visit;
	__u64 page[MW_TOUCH_PAGES];
};

/**
 * struct mw_touch_control - settings, written by the library between visits
 * @base: where the direct map of all memory begins, or 0 while it is being searched for
 * @pages: where the array of &struct page begins, or 0 if that is not known
 * @mask: the bits of a page table entry that are a physical address
 * @lowest: the lowest address that memory of the kernel can have, or 0 before the first search
 * @candidate: the next place to search at, in GiB below the address of a page table
 * @searched: 1 if this visit has searched
 * @visit: number of the visit
 * @reserved: zero
 */
struct mw_touch_control {
	__u64 base;
	__u64 pages;
	__u64 mask;
	__u64 lowest;
	__u32 candidate;
	__u32 searched;
	__u32 visit;
	__u32 reserved;
};

/* Places that one visit searches at. */
#define MW_TOUCH_CANDIDATES 256U

/* A random number for the 2 MiB that contain @address. */
MW_INLINE __u64 mw_touch_hash(__u64 address)
{
	__u64 hash = (address >> MW_TOUCH_REGION_SHIFT) * 0x9e3779b97f4a7c15ULL;

	hash ^= hash >> 32;
	hash *= 0xd6e8feb86659fd93ULL;
	return hash ^ hash >> 32;
}

/* Is any page of the 2 MiB of @hash sampled? */
MW_INLINE int mw_touch_samples_region(__u64 hash, __u32 shift)
{
	return shift <= 9 || !((hash >> 9) & ((1ULL << ((shift - 9) & 31)) - 1));
}

/* Every so many pages of a region one is sampled. */
MW_INLINE __u32 mw_touch_step(__u32 shift)
{
	return 1U << (shift < 9 ? shift : 9);
}

/* Is the page at @address sampled? A huge page is if its region is. */
MW_INLINE int mw_touch_samples_page(__u64 page, __u32 shift)
{
	__u64 hash = mw_touch_hash(page);

	if (!mw_touch_samples_region(hash, shift))
		return 0;
	return (page & MW_TOUCH_HUGE) ||
	       !((page >> MW_GROWTH_PAGE_SHIFT ^ hash) & (mw_touch_step(shift) - 1));
}

/* The number of pages of 4 KiB that a sampled page stands for. */
MW_INLINE __u64 mw_touch_weight(__u64 page, __u32 shift)
{
	if (page & MW_TOUCH_HUGE && shift < 9)
		shift = 9;
	return 1ULL << (shift & 63);
}

#endif /* _MW_TOUCH_H */
