/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The sort of the merge: stable, by time, for a concatenation of sequences that
 * are almost sorted.
 */
#ifndef MW_MERGE_SORT_H
#define MW_MERGE_SORT_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct mw_merge_entry - a frame in a ring, or a loss, that is to be delivered
 * @time_ns: time of its records, the key of the sort
 * @place: offset of the frame in the ring's buffer; index of the gap for a loss
 * @words: length of the frame in units of 8 bytes; 0: this is a loss
 * @source: index of its ring
 */
struct mw_merge_entry {
	uint64_t time_ns;
	uint32_t place;
	uint16_t words;
	uint16_t source;
};

/*
 * Sorts the first @count entries of *@entries. *@scratch has at least the same
 * capacity. The two pointers may be swapped on return.
 */
void mw_merge_sort(struct mw_merge_entry **entries, struct mw_merge_entry **scratch, size_t count);

#endif /* MW_MERGE_SORT_H */
