// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The table of assignments, with an index by RMID and generation, and a list of the
 * assignments of each RMID in the order of generations.
 */
#include "account/assignments.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/timemath.h"

#define NONE MW_NO_ASSIGNMENT

void mw_assignments_init(struct mw_assignments *table, uint32_t max)
{
	*table = (struct mw_assignments){
		.max = max,
		.free_place = NONE,
		.first_freed = NONE,
		.last_freed = NONE,
	};
	mw_index_init(&table->index);
	mw_index_init(&table->rmid_index);
}

void mw_assignments_uninit(struct mw_assignments *table)
{
	free(table->entries);
	free(table->rmids);
	mw_index_free(&table->index);
	mw_index_free(&table->rmid_index);
	mw_assignments_init(table, table->max);
}

/* ------------------------------------------------------------------ RMIDs */

static uint32_t rmid_hash(const struct mw_assignments *table, uint32_t rmid)
{
	return mw_index_hash(&table->rmid_index, rmid, 0);
}

/* Owners of RMID 0 have nothing in common: it has no history. */
static struct mw_rmid_history *find_rmid(const struct mw_assignments *table, uint32_t rmid)
{
	uint32_t at, number;

	mw_index_for_each (&table->rmid_index, rmid_hash(table, rmid), &at, number)
		if (table->rmids[number].rmid == rmid)
			return &table->rmids[number];
	return NULL;
}

static int obtain_rmid(struct mw_assignments *table, uint32_t rmid, struct mw_rmid_history **ret)
{
	struct mw_rmid_history *found = find_rmid(table, rmid);

	if (!found) {
		/* A CPU has some hundred RMIDs; a stream with more than the table holds is damaged.
		 */
		if (table->nr_rmids >= table->max)
			return -ENOSPC;
		if (mw_array_reserve(table->rmids, table->rmid_capacity, table->nr_rmids + 1) ||
		    mw_index_insert(&table->rmid_index, rmid_hash(table, rmid), table->nr_rmids))
			return -ENOMEM;
		found = &table->rmids[table->nr_rmids++];
		*found = (struct mw_rmid_history){ .rmid = rmid, .newest = NONE };
	}
	*ret = found;
	return 0;
}

bool mw_assignments_has_ended(const struct mw_assignments *table, uint32_t rmid,
			      uint32_t generation)
{
	const struct mw_rmid_history *found = find_rmid(table, rmid);

	return found && found->freed_generation >= generation;
}

static void note_end(struct mw_rmid_history *rmid, uint32_t generation)
{
	if (rmid->freed_generation < generation)
		rmid->freed_generation = generation;
}

void mw_assignments_note_end(struct mw_assignments *table, uint32_t rmid, uint32_t generation)
{
	struct mw_rmid_history *history;

	if (rmid == MEMWATCH_RMID_UNASSIGNED)
		return;
	/*
	 * If there is no memory for the note, a record of the allocation that arrives later
	 * adds the assignment again; it ends when the RMID is next assigned.
	 */
	if (!obtain_rmid(table, rmid, &history))
		note_end(history, generation);
}

uint32_t mw_assignments_newest(const struct mw_assignments *table, uint32_t rmid)
{
	const struct mw_rmid_history *found = find_rmid(table, rmid);

	return found ? found->newest : NONE;
}

/* ------------------------------------------------------------ assignments */

static uint32_t assignment_hash(const struct mw_assignments *table, uint32_t rmid,
				uint32_t generation)
{
	return mw_index_hash(&table->index, (uint64_t)rmid << 32 | generation, 0);
}

uint32_t mw_assignments_find(const struct mw_assignments *table, uint32_t rmid, uint32_t generation)
{
	uint32_t at, number;

	mw_index_for_each (&table->index, assignment_hash(table, rmid, generation), &at, number)
		if (table->entries[number].process.rmid == rmid &&
		    table->entries[number].process.generation == generation)
			return number;
	return NONE;
}

/* Links an assignment between those of the same RMID, which are in order of generation. */
static int link_by_generation(struct mw_assignments *table, uint32_t number)
{
	struct mw_assignment *entries = table->entries;
	uint32_t newer = NONE, older;
	struct mw_rmid_history *rmid;
	int err;

	entries[number].older = NONE;
	entries[number].newer = NONE;
	if (entries[number].process.rmid == MEMWATCH_RMID_UNASSIGNED)
		return 0;
	err = obtain_rmid(table, entries[number].process.rmid, &rmid);
	if (err)
		return err;
	older = rmid->newest;

	while (older != NONE &&
	       entries[older].process.generation > entries[number].process.generation) {
		newer = older;
		older = entries[older].older;
	}
	entries[number].older = older;
	entries[number].newer = newer;
	if (older != NONE)
		entries[older].newer = number;
	if (newer != NONE)
		entries[newer].older = number;
	else
		rmid->newest = number;
	return 0;
}

static void unlink_assignment(struct mw_assignments *table, uint32_t number)
{
	const struct mw_assignment *entry = &table->entries[number];

	if (entry->process.rmid == MEMWATCH_RMID_UNASSIGNED)
		return;
	if (entry->older != NONE)
		table->entries[entry->older].newer = entry->newer;
	if (entry->newer != NONE)
		table->entries[entry->newer].older = entry->older;
	else
		find_rmid(table, entry->process.rmid)->newest = entry->older;
}

/* A place for an assignment, not yet in the index. */
static int obtain_place(struct mw_assignments *table, uint32_t *ret)
{
	if (table->free_place != NONE) {
		*ret = table->free_place;
		table->free_place = table->entries[*ret].next;
		return 0;
	}
	if (mw_array_reserve(table->entries, table->capacity, table->nr_entries + 1))
		return -ENOMEM;
	*ret = table->nr_entries++;
	return 0;
}

static void release_place(struct mw_assignments *table, uint32_t number)
{
	table->entries[number].used = false;
	table->entries[number].next = table->free_place;
	table->free_place = number;
}

int mw_assignments_add(struct mw_assignments *table, const struct memwatch_process *process,
		       uint32_t *ret)
{
	uint32_t number;
	int err;

	if (table->live + table->freed >= table->max) {
		table->evicted++;
		if (table->first_freed == NONE)
			return -ENOSPC;
		mw_assignments_forget(table);
	}
	err = obtain_place(table, &number);
	if (err)
		return err;
	table->entries[number] = (struct mw_assignment){
		.process = *process,
		.used = true,
		.next = NONE,
	};
	err = mw_index_insert(&table->index,
			      assignment_hash(table, process->rmid, process->generation), number);
	if (err) {
		release_place(table, number);
		return err;
	}
	err = link_by_generation(table, number);
	if (err) {
		mw_index_remove(&table->index,
				assignment_hash(table, process->rmid, process->generation), number);
		release_place(table, number);
		return err;
	}
	table->live++;
	*ret = number;
	return 0;
}

void mw_assignments_end(struct mw_assignments *table, uint32_t number, uint64_t time_ns,
			uint32_t reason)
{
	struct memwatch_process *process = &table->entries[number].process;

	process->flags |= MEMWATCH_PROCESS_FREED;
	if (reason == MEMWATCH_REASON_REVOKED)
		process->flags |= MEMWATCH_PROCESS_PARTIAL;
	process->free_time_ns = mw_max_u64(time_ns, process->alloc_time_ns);
	process->reason = reason;
	mw_assignments_note_end(table, process->rmid, process->generation);
	if (table->last_freed == NONE)
		table->first_freed = number;
	else
		table->entries[table->last_freed].next = number;
	table->last_freed = number;
	table->live--;
	table->freed++;
}

void mw_assignments_forget(struct mw_assignments *table)
{
	uint32_t number = table->first_freed;
	const struct mw_assignment *entry = &table->entries[number];

	table->first_freed = entry->next;
	if (table->first_freed == NONE)
		table->last_freed = NONE;
	mw_index_remove(&table->index,
			assignment_hash(table, entry->process.rmid, entry->process.generation),
			number);
	unlink_assignment(table, number);
	release_place(table, number);
	table->freed--;
}
