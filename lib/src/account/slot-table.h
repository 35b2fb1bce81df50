/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The entries of one slot, found by (rmid, generation, cpu).
 */
#ifndef MW_SLOT_TABLE_H
#define MW_SLOT_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include <memwatch/slots.h>

struct mw_slot_table {
	struct memwatch_slot_entry *entries;
	uint32_t *index; /* open addressing: number of the entry + 1, 0 is empty */
	uint32_t count;
	uint32_t max; /* the index has twice as many */
};

/* The entry, zeroed if it is new. -ENOMEM. Valid until the next call. */
int mw_slot_table_obtain(struct mw_slot_table *table, uint32_t rmid, uint32_t generation,
			 uint32_t cpu, struct memwatch_slot_entry **ret);

/* Sorted by rmid, generation, cpu. Nothing can be found after that until clear. */
void mw_slot_table_sort(struct mw_slot_table *table);

void mw_slot_table_clear(struct mw_slot_table *table);
void mw_slot_table_free(struct mw_slot_table *table);

#endif /* MW_SLOT_TABLE_H */
