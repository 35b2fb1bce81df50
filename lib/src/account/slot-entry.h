/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A slot and its entries with what callers see through functions only. What they see as a
 * structure is the first member, so that a pointer to one is a pointer to the other.
 */
#ifndef MW_SLOT_ENTRY_H
#define MW_SLOT_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include <memwatch/slots.h>

/**
 * struct mw_slot_level - the readings of the occupancy in a slot
 * @first_ns: time of the first one
 * @last_ns: time of the last one
 * @area: the level between the two, multiplied by time
 * @bytes: the last one, the sum over the L3 domains
 * @status: &enum memwatch_status of the last one
 * @read: there is one
 */
struct mw_slot_level {
	uint64_t first_ns;
	uint64_t last_ns;
	unsigned __int128 area;
	uint64_t bytes;
	uint8_t status;
	bool read;
};

/**
 * struct mw_slot_entry - an entry
 * @seen: what the caller sees
 * @counter: increments, by &enum memwatch_counter
 * @rdt: by &enum memwatch_rdt_event
 * @level: when which occupancy was read
 */
struct mw_slot_entry {
	struct memwatch_slot_entry seen;
	struct memwatch_value counter[MEMWATCH_COUNTER_MAX];
	struct memwatch_value rdt[MEMWATCH_RDT_MAX];
	struct mw_slot_level level;
};

/**
 * struct mw_slot_given - a slot that the caller has
 * @seen: what the caller sees
 * @entries: of length seen.nr_entries
 * @losses: of length seen.nr_losses
 */
struct mw_slot_given {
	struct memwatch_slot seen;
	const struct mw_slot_entry *entries;
	const struct memwatch_loss *losses;
};

static inline const struct mw_slot_entry *mw_slot_entry_of(const struct memwatch_slot_entry *seen)
{
	return (const struct mw_slot_entry *)(const void *)seen;
}

static inline const struct mw_slot_given *mw_slot_given_of(const struct memwatch_slot *seen)
{
	return (const struct mw_slot_given *)(const void *)seen;
}

/* Whether an entry is of no process: idle, the kernel, or a process without an identity. */
static inline bool mw_slot_entry_is_unassigned(const struct mw_slot_entry *entry)
{
	return entry->seen.rmid == MEMWATCH_RMID_UNASSIGNED && !entry->seen.generation;
}

/* Whether an entry holds what found no place of its own. */
static inline bool mw_slot_entry_is_other(const struct mw_slot_entry *entry)
{
	return entry->seen.rmid == MEMWATCH_RMID_OTHER && !entry->seen.generation;
}

/* Whether something was measured for an entry. If not, it only says that its RMID was freed. */
static inline bool mw_slot_entry_is_measured(const struct mw_slot_entry *entry)
{
	bool measured = entry->seen.samples || entry->seen.residue.parts || entry->level.read;

	for (int i = 0; i < MEMWATCH_RDT_MAX; i++)
		measured |= entry->rdt[i].parts != 0;
	return measured;
}

#endif /* MW_SLOT_ENTRY_H */
