// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Entries of a slot, with an index. Tables are used again for later slots, so that a
 * steady stream allocates nothing.
 */
#include "account/slot-table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/value.h"

void mw_slot_table_init(struct mw_slot_table *table)
{
	*table = (struct mw_slot_table){ 0 };
	mw_index_init(&table->index);
}

int mw_slot_table_obtain(struct mw_slot_table *table, uint32_t rmid, uint32_t generation,
			 uint32_t cpu, bool add, struct mw_slot_entry **ret)
{
	uint32_t hash = mw_index_hash(&table->index, (uint64_t)rmid << 32 | generation, cpu);
	struct mw_slot_entry *entry;
	uint32_t at, number;

	mw_index_for_each (&table->index, hash, &at, number) {
		entry = &table->entries[number];
		if (entry->seen.rmid == rmid && entry->seen.generation == generation &&
		    entry->seen.cpu == cpu) {
			*ret = entry;
			return 0;
		}
	}
	if (!add)
		return -ENOSPC;
	if (mw_array_reserve(table->entries, table->capacity, table->count + 1) ||
	    mw_index_insert(&table->index, hash, table->count))
		return -ENOMEM;
	entry = &table->entries[table->count++];
	memset(entry, 0, sizeof(*entry));
	entry->seen.rmid = rmid;
	entry->seen.generation = generation;
	entry->seen.cpu = cpu;
	*ret = entry;
	return 0;
}

int mw_slot_table_obtain_other(struct mw_slot_table *table, struct mw_slot_entry **ret)
{
	int err = mw_slot_table_obtain(table, MEMWATCH_RMID_OTHER, 0, MEMWATCH_CPU_ANY, true, ret);

	table->has_other |= !err;
	return err;
}

static int compare_entries(const void *a, const void *b)
{
	const struct mw_slot_entry *x = a, *y = b;

	if (x->seen.rmid != y->seen.rmid)
		return x->seen.rmid < y->seen.rmid ? -1 : 1;
	if (x->seen.generation != y->seen.generation)
		return x->seen.generation < y->seen.generation ? -1 : 1;
	return x->seen.cpu < y->seen.cpu ? -1 : x->seen.cpu > y->seen.cpu;
}

void mw_slot_table_sort(struct mw_slot_table *table)
{
	if (table->count > 1)
		qsort(table->entries, table->count, sizeof(*table->entries), compare_entries);
}

void mw_slot_entry_mark_samples(struct mw_slot_entry *entry)
{
	mw_value_mark_lower_bound(&entry->seen.cpu_time_ns);
	for (int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		mw_value_mark_lower_bound(&entry->counter[i]);
}

void mw_slot_entry_mark_all(struct mw_slot_entry *entry)
{
	mw_slot_entry_mark_samples(entry);
	for (int i = 0; i < MEMWATCH_RDT_MAX; i++)
		mw_value_mark_lower_bound(&entry->rdt[i]);
}

void mw_slot_table_clear(struct mw_slot_table *table)
{
	table->count = 0;
	table->has_other = false;
	mw_index_clear(&table->index);
}

void mw_slot_table_free(struct mw_slot_table *table)
{
	free(table->entries);
	mw_index_free(&table->index);
	table->entries = NULL;
	table->count = table->capacity = 0;
	table->has_other = false;
}
