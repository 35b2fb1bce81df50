// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The heap of pending changes.
 */
#include "account/changes.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"

void mw_changes_uninit(struct mw_changes *changes)
{
	free(changes->heap);
	*changes = (struct mw_changes){ 0 };
}

static bool change_before(const struct mw_change *a, const struct mw_change *b)
{
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns;
	if (a->kind != b->kind)
		return a->kind < b->kind;
	return a->sequence < b->sequence;
}

int mw_changes_push(struct mw_changes *changes, const struct mw_change *change)
{
	struct mw_change added = *change;
	struct mw_change *heap;
	size_t at = changes->count;

	if (mw_array_reserve(changes->heap, changes->capacity, changes->count + 1))
		return -ENOMEM;
	heap = changes->heap;
	added.sequence = changes->sequence++;
	changes->count++;
	for (; at > 0 && change_before(&added, &heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = added;
	return 0;
}

struct mw_change mw_changes_pop(struct mw_changes *changes)
{
	struct mw_change *heap = changes->heap;
	struct mw_change first = heap[0];
	struct mw_change last = heap[--changes->count];
	size_t count = changes->count;
	size_t at = 0;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < count && change_before(&heap[child + 1], &heap[child]))
			child++;
		if (child >= count || !change_before(&heap[child], &last))
			break;
		heap[at] = heap[child];
		at = child;
	}
	if (count)
		heap[at] = last;
	return first;
}

const struct memwatch_process *mw_changes_find_alloc(const struct mw_changes *changes,
						     uint32_t rmid, uint32_t generation)
{
	for (size_t i = 0; i < changes->count; i++) {
		const struct mw_change *change = &changes->heap[i];

		if (change->kind <= MW_CHANGE_EXISTING && change->process.rmid == rmid &&
		    change->process.generation == generation)
			return &change->process;
	}
	return NULL;
}
