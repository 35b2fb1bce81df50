/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Changes of assignments that have not taken effect yet: a priority queue by time.
 */
#ifndef MW_CHANGES_H
#define MW_CHANGES_H

#include <stddef.h>
#include <stdint.h>

#include <memwatch/tracker.h>

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
 * struct mw_changes - the queue, a binary heap; zero is an empty one
 * @heap: the earliest change is the first
 * @count: how many there are
 * @capacity: how many fit
 * @sequence: number of the next change
 */
struct mw_changes {
	struct mw_change *heap;
	size_t count;
	size_t capacity;
	uint64_t sequence;
};

void mw_changes_uninit(struct mw_changes *changes);

/* Adds a copy of @change. Returns 0 or -ENOMEM. */
int mw_changes_push(struct mw_changes *changes, const struct mw_change *change);

/* Removes the earliest change. There is one. */
struct mw_change mw_changes_pop(struct mw_changes *changes);

/* The process of an allocation that is in the queue, or NULL. Searches the whole queue. */
const struct memwatch_process *mw_changes_find_alloc(const struct mw_changes *changes,
						     uint32_t rmid, uint32_t generation);

#endif /* MW_CHANGES_H */
