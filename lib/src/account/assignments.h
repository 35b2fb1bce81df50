/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The table of assignments: which process has, or had, which RMID. It holds live
 * assignments and freed ones, which are forgotten in the order in which they were freed.
 */
#ifndef MW_ASSIGNMENTS_H
#define MW_ASSIGNMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include <memwatch/tracker.h>

#include "base/index.h"

#define MW_NO_ASSIGNMENT UINT32_MAX

/**
 * struct mw_assignment - an assignment, or a free place
 * @process: what is known of it
 * @used: it is an assignment
 * @older: assignment of the same RMID with the next lower generation
 * @newer: assignment of the same RMID with the next higher generation
 * @next: of a freed assignment: the one freed after it; of a free place: the next one
 */
struct mw_assignment {
	struct memwatch_process process;
	bool used;
	uint32_t older;
	uint32_t newer;
	uint32_t next;
};

/**
 * struct mw_rmid_history - what is remembered of an RMID, for ever
 * @rmid: the RMID
 * @newest: its assignment of the highest generation
 * @freed_generation: the highest generation that is known to have ended
 */
struct mw_rmid_history {
	uint32_t rmid;
	uint32_t newest;
	uint32_t freed_generation;
};

/**
 * struct mw_assignments - the table
 * @max: assignments at most; and RMIDs at most
 * @entries: assignments and free places
 * @nr_entries: length of @entries
 * @capacity: how many entries fit
 * @free_place: first free place
 * @index: from (RMID, generation) to @entries
 * @rmids: one for each RMID that was ever seen
 * @nr_rmids: length of @rmids
 * @rmid_capacity: how many RMIDs fit
 * @rmid_index: from RMID to @rmids
 * @first_freed: the freed assignment that is forgotten next
 * @last_freed: the one that was freed last
 * @live: how many assignments hold
 * @freed: how many were freed and are not forgotten yet
 * @evicted: how often there was no place for an assignment
 */
struct mw_assignments {
	uint32_t max;
	struct mw_assignment *entries;
	uint32_t nr_entries;
	uint32_t capacity;
	uint32_t free_place;
	struct mw_index index;
	struct mw_rmid_history *rmids;
	uint32_t nr_rmids;
	uint32_t rmid_capacity;
	struct mw_index rmid_index;
	uint32_t first_freed;
	uint32_t last_freed;
	uint64_t live;
	uint64_t freed;
	uint64_t evicted;
};

void mw_assignments_init(struct mw_assignments *table, uint32_t max);
void mw_assignments_uninit(struct mw_assignments *table);

/* The number of an assignment, or MW_NO_ASSIGNMENT. */
uint32_t mw_assignments_find(const struct mw_assignments *table, uint32_t rmid,
			     uint32_t generation);

/* The number of the newest assignment of an RMID, or MW_NO_ASSIGNMENT. */
uint32_t mw_assignments_newest(const struct mw_assignments *table, uint32_t rmid);

/*
 * Adds an assignment that is not in the table, and forgets the oldest freed one if there
 * is no place. Returns 0; -ENOSPC, all assignments are live; -ENOMEM.
 */
int mw_assignments_add(struct mw_assignments *table, const struct memwatch_process *process,
		       uint32_t *ret);

/* A live assignment ends at @time_ns. */
void mw_assignments_end(struct mw_assignments *table, uint32_t number, uint64_t time_ns,
			uint32_t reason);

/* Forgets the assignment that was freed first. There is one. */
void mw_assignments_forget(struct mw_assignments *table);

/* Whether this generation of an RMID is known to have ended, even if it is forgotten. */
bool mw_assignments_has_ended(const struct mw_assignments *table, uint32_t rmid,
			      uint32_t generation);

/* Notes that a generation has ended that is not in the table. */
void mw_assignments_note_end(struct mw_assignments *table, uint32_t rmid, uint32_t generation);

#endif /* MW_ASSIGNMENTS_H */
