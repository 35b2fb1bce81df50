/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Changes of assignments that have not taken effect yet: a priority queue by time, and an
 * index of the allocations in it.
 */
#ifndef MW_CHANGES_H
#define MW_CHANGES_H

#include <stddef.h>
#include <stdint.h>

#include <memwatch/tracker.h>

#include "base/index.h"

/* Changes of the same time take effect in this order. */
enum mw_change_kind {
	MW_CHANGE_ALLOC,
	MW_CHANGE_EXISTING,
	MW_CHANGE_EXEC,
	MW_CHANGE_FREE,
};

/**
 * struct mw_change - one change
 * @time_ns: when it takes effect
 * @sequence: number in the order of arrival; decides between changes of the same time
 *	and kind; set by mw_changes_push()
 * @kind: &enum mw_change_kind
 * @process: the assignment that changes; of an EXEC or FREE only what is known of it
 */
struct mw_change {
	uint64_t time_ns;
	uint64_t sequence;
	enum mw_change_kind kind;
	struct memwatch_process process;
};

/**
 * struct mw_change_place - a change in the queue, or a free place
 * @change: the change
 * @next: of an allocation: the next one of the same RMID and generation in the order of
 *	arrival; of a free place: the next one
 * @previous: of an allocation: the one before it in this order
 * @last: of the first of these allocations: the last one
 */
struct mw_change_place {
	struct mw_change change;
	uint32_t next;
	uint32_t previous;
	uint32_t last;
};

/**
 * struct mw_changes - the queue
 * @places: changes and free places
 * @nr_places: length of @places
 * @capacity: how many fit
 * @free_place: first free place
 * @heap: numbers of @places, a binary heap; the earliest change is the first
 * @count: length of @heap
 * @heap_capacity: how many fit
 * @sequence: number of the next change
 * @allocs: from (RMID, generation) to the first allocation of it in @places
 */
struct mw_changes {
	struct mw_change_place *places;
	uint32_t nr_places;
	uint32_t capacity;
	uint32_t free_place;
	uint32_t *heap;
	uint32_t count;
	uint32_t heap_capacity;
	uint64_t sequence;
	struct mw_index allocs;
};

void mw_changes_init(struct mw_changes *changes);
void mw_changes_uninit(struct mw_changes *changes);

/* Adds a copy of @change. Returns 0 or -ENOMEM. */
int mw_changes_push(struct mw_changes *changes, const struct mw_change *change);

/* The time of the earliest change. There is one. */
uint64_t mw_changes_first_ns(const struct mw_changes *changes);

/* Removes the earliest change. There is one. */
struct mw_change mw_changes_pop(struct mw_changes *changes);

/* The process of the first allocation that arrived and is in the queue, or NULL. */
const struct memwatch_process *mw_changes_find_alloc(const struct mw_changes *changes,
						     uint32_t rmid, uint32_t generation);

#endif /* MW_CHANGES_H */
