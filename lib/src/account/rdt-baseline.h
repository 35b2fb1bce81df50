/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * From bandwidth counters that run since the allocation to what was moved
 * between two readings. Remembers the last reading of each (rmid, generation,
 * L3 domain).
 */
#ifndef MW_RDT_BASELINE_H
#define MW_RDT_BASELINE_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/memwatch.h>

struct mw_rdt_baseline;

int mw_rdt_baseline_new(struct mw_rdt_baseline **ret);
void mw_rdt_baseline_free(struct mw_rdt_baseline *baseline);

/* An RMID begins or ends. One whose beginning was seen counts from 0 at that time. */
int mw_rdt_baseline_born(struct mw_rdt_baseline *baseline, uint32_t rmid, uint32_t generation,
			 uint64_t time_ns);
void mw_rdt_baseline_died(struct mw_rdt_baseline *baseline, uint32_t rmid, uint32_t generation);

/* What lies between the reading before and this one. */
struct mw_rdt_delta {
	uint64_t begin_ns[MEMWATCH_RDT_MAX];
	uint64_t end_ns;
	uint64_t value[MEMWATCH_RDT_MAX]; /* of OCCUPANCY: the level in all domains */
	uint8_t status[MEMWATCH_RDT_MAX];
	bool repeated[MEMWATCH_RDT_MAX]; /* traffic: an old reading, says nothing new */
	/* the level added to the same slot before, to be taken back */
	uint64_t replaced;
};

/*
 * 1: @bytes is what earlier owners of the RMID had left in the cache, of one
 * domain, when this generation began. 0: the reading says nothing of that.
 * -ENOMEM. Records that are about nothing else have status FIRST, and are not for
 * mw_rdt_baseline_update().
 */
int mw_rdt_baseline_residue(struct mw_rdt_baseline *baseline,
			    const struct memwatch_record_rdt *reading, uint64_t *bytes);

/* @slot names the slot of the reading, for @replaced. -ENOMEM, -EINVAL. */
int mw_rdt_baseline_update(struct mw_rdt_baseline *baseline,
			   const struct memwatch_record_rdt *reading, uint64_t slot,
			   struct mw_rdt_delta *ret);

#endif /* MW_RDT_BASELINE_H */
