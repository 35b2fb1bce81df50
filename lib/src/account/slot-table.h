/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The entries of one slot, found by RMID, generation and CPU.
 */
#ifndef MW_SLOT_TABLE_H
#define MW_SLOT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "account/slot-entry.h"
#include "base/index.h"

/**
 * struct mw_slot_table - the table
 * @entries: in the order in which they were added, until they are sorted
 * @count: how many there are
 * @capacity: how many fit
 * @has_other: one of the entries is that of MEMWATCH_RMID_OTHER
 * @index: from (RMID, generation, CPU) to @entries
 */
struct mw_slot_table {
	struct mw_slot_entry *entries;
	uint32_t count;
	uint32_t capacity;
	bool has_other;
	struct mw_index index;
};

void mw_slot_table_init(struct mw_slot_table *table);

/*
 * Finds the entry, or adds one that is zero. Returns 0; -ENOSPC if one would have to be added
 * and @add is not set; or -ENOMEM. The entry is valid until the next call.
 */
int mw_slot_table_obtain(struct mw_slot_table *table, uint32_t rmid, uint32_t generation,
			 uint32_t cpu, bool add, struct mw_slot_entry **ret);

/* The same for the entry of MEMWATCH_RMID_OTHER. */
int mw_slot_table_obtain_other(struct mw_slot_table *table, struct mw_slot_entry **ret);

/* Sorts by RMID, generation and CPU. Until the table is cleared, nothing can be found. */
void mw_slot_table_sort(struct mw_slot_table *table);

/* Something is missing in what was counted while a CPU ran: it is estimated, if it was exact. */
void mw_slot_entry_mark_samples(struct mw_slot_entry *entry);

/* The same, and RDT readings are missing as well. */
void mw_slot_entry_mark_all(struct mw_slot_entry *entry);

/* Removes all entries and keeps the memory. */
void mw_slot_table_clear(struct mw_slot_table *table);

/* Removes all entries and frees the memory. */
void mw_slot_table_free(struct mw_slot_table *table);

#endif /* MW_SLOT_TABLE_H */
