/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The time of CPUs that sleep. A CPU that stops its tick says so, and sends one sample of RMID 0
 * for all the time of its sleep when it wakes up. What it has slept until now is known before.
 */
#ifndef MW_TOP_IDLE_H
#define MW_TOP_IDLE_H

#include <stddef.h>
#include <stdint.h>

#include "summary/feed.h"

/**
 * struct top_idle - the CPUs that sleep
 * @since_ns: by CPU: since when it sleeps, or 0
 * @nr_cpus: length of @since_ns
 * @slot: number of the newest slot
 * @late_ns: sleep of CPUs that have woken up in it: its part before the open slots comes to the
 *	summary with the next slot; 0 when all slots have been closed
 * @counted_ns: sleep that was counted in earlier intervals, and that was not in the summary when
 *	the last of them ended
 */
struct top_idle {
	uint64_t *since_ns;
	size_t nr_cpus;
	uint64_t slot;
	uint64_t late_ns;
	uint64_t counted_ns;
};

void mw_top_idle_uninit(struct top_idle *idle);

/* Notes the state of a CPU, from each record that was fed. Returns 0 or -ENOMEM. */
int mw_top_idle_note(struct top_idle *idle, const struct mw_feed *feed,
		     const struct memwatch_record_header *record);

/*
 * An interval ends at @end_ns. @sampled_ns is the time of RMID 0 in the summary of it; returns what
 * it is with the sleep that goes on, and without what was counted before.
 */
uint64_t mw_top_idle_cut(struct top_idle *idle, uint64_t end_ns, uint64_t sampled_ns);

#endif
