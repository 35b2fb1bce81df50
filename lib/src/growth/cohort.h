/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The cohort of a suspect: the pages that it has gained since it became one, as a sample, and
 * when each was touched last. Leaked memory is memory that nobody touches again.
 */
#ifndef MW_GROWTH_COHORT_H
#define MW_GROWTH_COHORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/touch.h"

/**
 * struct mw_cohort_page - a page of the sample
 * @at: address, and MW_TOUCH_HUGE
 * @born_ns: when it was seen first
 * @touched_ns: when it was last seen to have been touched, sweeps left out
 * @visits: visits that found it, the first left out
 * @blind: those of them that could not tell whether it was touched, because it was shared
 * @quiet: visits since it was touched
 * @old: it was there before the process became a suspect: not of the cohort
 */
struct mw_cohort_page {
	uint64_t at;
	uint64_t born_ns;
	uint64_t touched_ns;
	uint32_t visits;
	uint32_t blind;
	uint32_t quiet;
	bool old;
};

/**
 * struct mw_cohort - the sampled pages of a suspect
 * @start_ns: time of the first visit; 0: there was none
 * @shift: 1 of 2^shift pages is sampled
 * @room: how many pages there can be, at most MW_TOUCH_PAGES
 * @count: number of pages
 * @sweeps: visits that found nearly all quiet pages touched at once
 * @page: in order of address; owned
 */
struct mw_cohort {
	uint64_t start_ns;
	uint32_t shift;
	uint32_t room;
	uint32_t count;
	uint32_t sweeps;
	struct mw_cohort_page *page;
};

/* Begins the cohort of a process that has @pages of memory, of which at most @room are sampled. */
void mw_cohort_init(struct mw_cohort *cohort, uint64_t pages, uint32_t room);
void mw_cohort_uninit(struct mw_cohort *cohort);

/*
 * Makes the sample of so many pages fit again, as coarsely as that needs. Returns true if that
 * changed @shift: then the suspect must be visited again with it.
 */
bool mw_cohort_fit(struct mw_cohort *cohort, uint64_t pages);

/*
 * Takes what a visit at @now_ns has found, @count pages in order of address. Those whose accessed
 * bits are to be cleared are put into @clear, which has as much room. Returns their number, or
 * -ENOMEM.
 */
int mw_cohort_visit(struct mw_cohort *cohort, uint64_t now_ns, const __u64 *pages, uint32_t count,
		    __u64 *clear);

/* Leaves out a page that cannot be cleared. */
void mw_cohort_drop(struct mw_cohort *cohort, uint64_t page);

/* How much of what the process has gained is cold, at @now_ns. All 0 if that is not known yet. */
void mw_cohort_measure(const struct mw_cohort *cohort, uint64_t now_ns,
		       struct mw_growth_touch *ret);

#endif /* MW_GROWTH_COHORT_H */
