// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Entries of a slot. Tables are reused, so a steady stream allocates nothing.
 */
#include "account/slot-table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t place(const struct mw_slot_table *table, uint32_t rmid, uint32_t generation,
		      uint32_t cpu)
{
	uint64_t key = ((uint64_t)rmid << 32 | generation) * 0x9e3779b97f4a7c15ULL;

	key = (key ^ cpu) * 0xff51afd7ed558ccdULL;
	return (uint32_t)(key >> 32) & (table->max * 2 - 1);
}

static void insert(struct mw_slot_table *table, uint32_t number)
{
	const struct memwatch_slot_entry *entry = &table->entries[number];
	uint32_t at = place(table, entry->rmid, entry->generation, entry->cpu);

	while (table->index[at])
		at = (at + 1) & (table->max * 2 - 1);
	table->index[at] = number + 1;
}

static int grow(struct mw_slot_table *table)
{
	uint32_t max = table->max ? table->max * 2 : 16;
	struct memwatch_slot_entry *entries;
	uint32_t *index;

	entries = realloc(table->entries, max * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	table->entries = entries;
	index = realloc(table->index, max * 2 * sizeof(*index));
	if (!index)
		return -ENOMEM;
	table->index = index;
	table->max = max;
	memset(index, 0, max * 2 * sizeof(*index));
	for (uint32_t i = 0; i < table->count; i++)
		insert(table, i);
	return 0;
}

int mw_slot_table_obtain(struct mw_slot_table *table, uint32_t rmid, uint32_t generation,
			 uint32_t cpu, struct memwatch_slot_entry **ret)
{
	struct memwatch_slot_entry *entry;
	uint32_t at;

	if (table->count == table->max && grow(table))
		return -ENOMEM;
	at = place(table, rmid, generation, cpu);
	for (; table->index[at]; at = (at + 1) & (table->max * 2 - 1)) {
		entry = &table->entries[table->index[at] - 1];
		if (entry->rmid == rmid && entry->generation == generation && entry->cpu == cpu) {
			*ret = entry;
			return 0;
		}
	}
	entry = &table->entries[table->count++];
	memset(entry, 0, sizeof(*entry));
	entry->rmid = rmid;
	entry->generation = generation;
	entry->cpu = cpu;
	table->index[at] = table->count;
	*ret = entry;
	return 0;
}

static int by_key(const void *a, const void *b)
{
	const struct memwatch_slot_entry *x = a, *y = b;

	if (x->rmid != y->rmid)
		return x->rmid < y->rmid ? -1 : 1;
	if (x->generation != y->generation)
		return x->generation < y->generation ? -1 : 1;
	return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

void mw_slot_table_sort(struct mw_slot_table *table)
{
	if (table->count > 1)
		qsort(table->entries, table->count, sizeof(*table->entries), by_key);
}

void mw_slot_table_clear(struct mw_slot_table *table)
{
	table->count = 0;
	if (table->max)
		memset(table->index, 0, table->max * 2 * sizeof(*table->index));
}

void mw_slot_table_free(struct mw_slot_table *table)
{
	free(table->entries);
	free(table->index);
	*table = (struct mw_slot_table){ 0 };
}
