/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads the counters of a process, and converts pages of the machine to those of the
 * detectors.
 */
#ifndef _MW_GROWTH_COUNTERS_H
#define _MW_GROWTH_COUNTERS_H

#include "kernel.h"
#include "growth-maps.h"

/* The settings, written by the library. */
struct mw_growth_control control = {};

/* From pages of the machine to pages of 4 KiB. */
static __always_inline __u32 convert_pages(__s64 pages)
{
	/* The shared part of a percpu_counter may be negative for a moment. */
	if (pages < 0)
		return 0;
	pages <<= control.page_shift & 15;
	return pages >= MW_GROWTH_NO_LIMIT ? MW_GROWTH_NO_LIMIT - 1 : (__u32)pages;
}

static __always_inline void sample_read_counters(struct mm_struct *mm, struct mw_growth_sample *s)
{
	if (bpf_core_type_exists(struct mm_rss_stat)) {
		struct mm_struct___old *old = (void *)mm;
		atomic_long_t count[NR_MEMBERS] = {};

		/* The verifiers of these kernels cannot follow an array of a typedef. */
		bpf_core_read(count, sizeof(count), &old->rss_stat.count);
		s->file = convert_pages(count[0].counter);
		s->anon = convert_pages(count[1].counter);
		s->swap = convert_pages(count[2].counter);
		s->shmem = convert_pages(count[3].counter);
	} else {
		struct mm_struct___new *new = (void *)mm;

		s->file = convert_pages(new->rss_stat[0].count);
		s->anon = convert_pages(new->rss_stat[1].count);
		s->swap = convert_pages(new->rss_stat[2].count);
		s->shmem = convert_pages(new->rss_stat[3].count);
	}
}

/* Pages until @limit, which is in bytes, if @used pages of the machine are in use. */
static __always_inline __u32 headroom_below(__u64 limit, __u64 used)
{
	/* RLIM_INFINITY, and limits of 64 PiB and more, are no limit. */
	if (limit >> 56)
		return MW_GROWTH_NO_LIMIT;
	limit >>= MW_GROWTH_PAGE_SHIFT;
	used <<= control.page_shift & 15;
	return limit > used ? (limit - used >= MW_GROWTH_NO_LIMIT ? MW_GROWTH_NO_LIMIT - 1
								  : limit - used)
			    : 0;
}

/* From pages of the machine to pages of 4 KiB; ~0 is no limit. */
static __always_inline __u32 convert_headroom(__u64 pages)
{
	if (pages >> 48)
		return MW_GROWTH_NO_LIMIT;
	return convert_pages(pages);
}

#endif /* _MW_GROWTH_COUNTERS_H */
