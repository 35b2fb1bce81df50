// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The heap of pending changes. Allocations of the same RMID and generation form a list, of
 * which the index knows the first one: however many there are, each operation costs a step
 * of the heap.
 */
#include "account/changes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"

#define NONE UINT32_MAX

void mw_changes_init(struct mw_changes *changes)
{
	*changes = (struct mw_changes){ .free_place = NONE };
	mw_index_init(&changes->allocs);
}

void mw_changes_uninit(struct mw_changes *changes)
{
	free(changes->places);
	free(changes->heap);
	mw_index_free(&changes->allocs);
	*changes = (struct mw_changes){ .free_place = NONE };
}

/* ---------------------------------------------- allocations by generation */

static bool is_alloc(const struct mw_change *change)
{
	return change->kind <= MW_CHANGE_EXISTING;
}

static uint32_t alloc_hash(const struct mw_changes *changes, uint32_t rmid, uint32_t generation)
{
	return mw_index_hash(&changes->allocs, (uint64_t)rmid << 32 | generation, 0);
}

static uint32_t find_first_alloc(const struct mw_changes *changes, uint32_t rmid,
				 uint32_t generation)
{
	uint32_t at, number;

	mw_index_for_each (&changes->allocs, alloc_hash(changes, rmid, generation), &at, number) {
		const struct memwatch_process *process = &changes->places[number].change.process;

		if (process->rmid == rmid && process->generation == generation)
			return number;
	}
	return NONE;
}

static int list_alloc(struct mw_changes *changes, uint32_t number)
{
	const struct memwatch_process *process = &changes->places[number].change.process;
	uint32_t first = find_first_alloc(changes, process->rmid, process->generation);

	if (first == NONE) {
		changes->places[number].last = number;
		return mw_index_insert(&changes->allocs,
				       alloc_hash(changes, process->rmid, process->generation),
				       number);
	}
	changes->places[number].previous = changes->places[first].last;
	changes->places[changes->places[first].last].next = number;
	changes->places[first].last = number;
	return 0;
}

static void unlist_alloc(struct mw_changes *changes, uint32_t number)
{
	const struct mw_change_place *place = &changes->places[number];
	const struct memwatch_process *process = &place->change.process;
	uint32_t hash = alloc_hash(changes, process->rmid, process->generation);
	uint32_t first;

	if (place->previous != NONE) {
		first = find_first_alloc(changes, process->rmid, process->generation);
		changes->places[place->previous].next = place->next;
		if (changes->places[first].last == number)
			changes->places[first].last = place->previous;
	} else if (place->next != NONE) {
		changes->places[place->next].last = place->last;
		mw_index_renumber(&changes->allocs, hash, number, place->next);
	} else {
		mw_index_remove(&changes->allocs, hash, number);
	}
	if (place->next != NONE)
		changes->places[place->next].previous = place->previous;
}

const struct memwatch_process *mw_changes_find_alloc(const struct mw_changes *changes,
						     uint32_t rmid, uint32_t generation)
{
	uint32_t number = find_first_alloc(changes, rmid, generation);

	return number == NONE ? NULL : &changes->places[number].change.process;
}

/* ---------------------------------------------------------------- the queue */

static bool change_before(const struct mw_changes *changes, uint32_t a, uint32_t b)
{
	const struct mw_change *x = &changes->places[a].change, *y = &changes->places[b].change;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns;
	if (x->kind != y->kind)
		return x->kind < y->kind;
	return x->sequence < y->sequence;
}

/* A place for a change, which is not in the heap yet. */
static int obtain_place(struct mw_changes *changes, uint32_t *ret)
{
	if (changes->free_place != NONE) {
		*ret = changes->free_place;
		changes->free_place = changes->places[*ret].next;
		return 0;
	}
	if (mw_array_reserve(changes->places, changes->capacity, changes->nr_places + 1))
		return -ENOMEM;
	*ret = changes->nr_places++;
	return 0;
}

static void release_place(struct mw_changes *changes, uint32_t number)
{
	changes->places[number].next = changes->free_place;
	changes->free_place = number;
}

int mw_changes_push(struct mw_changes *changes, const struct mw_change *change)
{
	uint32_t at = changes->count, number;
	uint32_t *heap;
	int err;

	if (mw_array_reserve(changes->heap, changes->heap_capacity, changes->count + 1) ||
	    obtain_place(changes, &number))
		return -ENOMEM;
	changes->places[number] = (struct mw_change_place){
		.change = *change,
		.next = NONE,
		.previous = NONE,
	};
	changes->places[number].change.sequence = changes->sequence++;
	err = is_alloc(change) ? list_alloc(changes, number) : 0;
	if (err) {
		release_place(changes, number);
		return err;
	}
	heap = changes->heap;
	changes->count++;
	for (; at > 0 && change_before(changes, number, heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = number;
	return 0;
}

uint64_t mw_changes_first_ns(const struct mw_changes *changes)
{
	return changes->places[changes->heap[0]].change.time_ns;
}

struct mw_change mw_changes_pop(struct mw_changes *changes)
{
	uint32_t *heap = changes->heap;
	uint32_t first = heap[0], last = heap[--changes->count], count = changes->count;
	uint32_t at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < count && change_before(changes, heap[child + 1], heap[child]))
			child++;
		if (child >= count || !change_before(changes, heap[child], last))
			break;
		heap[at] = heap[child];
		at = child;
	}
	if (count)
		heap[at] = last;
	if (is_alloc(&changes->places[first].change))
		unlist_alloc(changes, first);
	release_place(changes, first);
	return changes->places[first].change;
}
