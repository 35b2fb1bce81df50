/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The sort inside the merge: stable, by time, made for batches that are the
 * concatenation of runs that are almost sorted.
 */
#ifndef MW_MERGE_SORT_H
#define MW_MERGE_SORT_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct mw_merge_entry - a frame in a ring, not yet handed out
 * @time_ns: the time of its records, the key
 * @place: of the frame in the ring's buffer; or, if @words is 0, the number of a
 *	gap of its source
 * @words: length of the frame, in units of 8 bytes; 0: this is a loss
 * @source: index of its ring
 */
struct mw_merge_entry {
	uint64_t time_ns;
	uint32_t place;
	uint16_t words;
	uint16_t source;
};

/*
 * Sorts @count entries of *@batch. *@scratch has at least as much room; the two
 * may have changed places when it returns.
 */
void mw_merge_sort(struct mw_merge_entry **batch, struct mw_merge_entry **scratch, size_t count);

#endif /* MW_MERGE_SORT_H */
