/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The last RDT reading of each RMID, generation and L3 domain. The bandwidth counters run
 * from the allocation on; the difference of two readings is what was moved between them.
 */
#ifndef MW_RDT_BASELINE_H
#define MW_RDT_BASELINE_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/memwatch.h>

struct mw_rdt_baseline;

int mw_rdt_baseline_new(struct mw_rdt_baseline **ret);
void mw_rdt_baseline_free(struct mw_rdt_baseline *baseline);

/*
 * The RMID was allocated (born) or freed (died). If the allocation was reported, the first
 * reading is compared with 0 at that time; if not, it is only the baseline of the next reading.
 */
int mw_rdt_baseline_born(struct mw_rdt_baseline *baseline, uint32_t rmid, uint32_t generation,
			 uint64_t time_ns);

/*
 * The record of the allocation was lost, but another one says when it was. What the first reading
 * has counted since then is added to the difference of the next reading.
 */
int mw_rdt_baseline_born_late(struct mw_rdt_baseline *baseline, uint32_t rmid, uint32_t generation,
			      uint64_t time_ns);
void mw_rdt_baseline_died(struct mw_rdt_baseline *baseline, uint32_t rmid, uint32_t generation);

/**
 * struct mw_rdt_delta - the difference between a reading and the previous one
 * @begin_ns: by event: time of the previous reading
 * @end_ns: time of this reading
 * @value: by event: bytes moved; of OCCUPANCY: bytes occupied in all domains together
 * @status: by event: &enum memwatch_status of @value
 * @repeated: by event: an old reading was repeated, which adds nothing
 * @replaced: occupancy that was added to the same slot before and must be subtracted
 */
struct mw_rdt_delta {
	uint64_t begin_ns[MEMWATCH_RDT_MAX];
	uint64_t end_ns;
	uint64_t value[MEMWATCH_RDT_MAX];
	uint8_t status[MEMWATCH_RDT_MAX];
	bool repeated[MEMWATCH_RDT_MAX];
	uint64_t replaced;
};

/*
 * Gets the residual occupancy of one domain at the allocation. Returns 1 and sets @bytes if the
 * reading contains it, 0 if it does not, or -ENOMEM. A reading with the status FIRST contains
 * nothing else and must not be given to mw_rdt_baseline_update().
 */
int mw_rdt_baseline_residue(struct mw_rdt_baseline *baseline,
			    const struct memwatch_record_rdt *reading, uint64_t *bytes);

/*
 * Compares a reading with the previous one and stores it. @slot is the number of its slot.
 * Returns 0, -ENOMEM, or -EINVAL if the domain is impossible.
 */
int mw_rdt_baseline_update(struct mw_rdt_baseline *baseline,
			   const struct memwatch_record_rdt *reading, uint64_t slot,
			   struct mw_rdt_delta *ret);

#endif /* MW_RDT_BASELINE_H */
