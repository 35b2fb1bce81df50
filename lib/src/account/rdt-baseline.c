// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The last readings. Entries of RMIDs that have ended stay until the table is full, because
 * readings may come after the end. An RMID whose end was lost ends when its next
 * generation begins.
 */
#include "account/rdt-baseline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/index.h"
#include "base/timemath.h"

#define BASELINES_MAX 262144	 /* more than the domains times the RMIDs of any machine */
#define ANY_DOMAIN    UINT32_MAX /* the sum over all domains */
#define NO_SLOT	      UINT64_MAX
#define DOMAINS_MAX   64U /* entries of higher domains stay until the whole table is emptied */

/**
 * struct baseline - what is known of an RMID in one L3 domain, or in all of them
 * @rmid: RMID
 * @generation: its generation
 * @domain: L3 domain, or ANY_DOMAIN
 * @dead: the RMID has ended; the entry is removed when the table is full
 * @born: only for ANY_DOMAIN: the allocation was seen; its time is @time_ns[0]
 * @residue: only for ANY_DOMAIN: the residual occupancy has been reported
 * @has: for each event: @value and @time_ns are valid
 * @time_ns: for each event: time of the last reading
 * @value: for each event: the last reading
 * @unclaimed: for each event: the first reading, if the allocation was not seen before it
 * @level: the last occupancy; for ANY_DOMAIN: the sum over the domains
 * @level_slot: only for ANY_DOMAIN: the slot to which @level was added, or NO_SLOT
 */
struct baseline {
	uint32_t rmid;
	uint32_t generation;
	uint32_t domain;
	bool dead;
	bool born;
	bool residue;
	bool has[MEMWATCH_RDT_MAX];
	uint64_t time_ns[MEMWATCH_RDT_MAX];
	uint64_t value[MEMWATCH_RDT_MAX];
	uint64_t unclaimed[MEMWATCH_RDT_MAX];
	uint64_t level;
	uint64_t level_slot;
};

/**
 * struct mw_rdt_baseline - the baselines
 * @entries: the baselines
 * @count: how many there are
 * @capacity: how many fit
 * @domains: domains below this number, which is at most DOMAINS_MAX, have been seen
 * @index: from (RMID, generation, domain) to @entries
 */
struct mw_rdt_baseline {
	struct baseline *entries;
	uint32_t count;
	uint32_t capacity;
	uint32_t domains;
	struct mw_index index;
};

int mw_rdt_baseline_new(struct mw_rdt_baseline **ret)
{
	struct mw_rdt_baseline *baseline = calloc(1, sizeof(*baseline));

	if (!baseline)
		return -ENOMEM;
	mw_index_init(&baseline->index);
	*ret = baseline;
	return 0;
}

void mw_rdt_baseline_free(struct mw_rdt_baseline *baseline)
{
	if (!baseline)
		return;
	free(baseline->entries);
	mw_index_free(&baseline->index);
	free(baseline);
}

static uint32_t baseline_hash(const struct mw_rdt_baseline *table, uint32_t rmid,
			      uint32_t generation, uint32_t domain)
{
	return mw_index_hash(&table->index, (uint64_t)rmid << 32 | generation, domain);
}

static struct baseline *find_baseline(const struct mw_rdt_baseline *table, uint32_t rmid,
				      uint32_t generation, uint32_t domain)
{
	uint32_t hash = baseline_hash(table, rmid, generation, domain), at, number;

	mw_index_for_each (&table->index, hash, &at, number) {
		struct baseline *entry = &table->entries[number];

		if (entry->rmid == rmid && entry->generation == generation &&
		    entry->domain == domain)
			return entry;
	}
	return NULL;
}

/* Removes the entries of RMIDs that have ended, or all if there are implausibly many. */
static int sweep_dead(struct mw_rdt_baseline *table)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < table->count; i++)
		if (!table->entries[i].dead)
			table->entries[kept++] = table->entries[i];
	/* No machine has so many: the input is invalid. Drop all, so that the table stays small. */
	table->count = kept > BASELINES_MAX ? 0 : kept;
	mw_index_clear(&table->index);
	for (uint32_t i = 0; i < table->count; i++) {
		const struct baseline *entry = &table->entries[i];

		if (mw_index_insert(
			    &table->index,
			    baseline_hash(table, entry->rmid, entry->generation, entry->domain), i))
			return -ENOMEM;
	}
	return 0;
}

/* Makes room for one more entry. After a sweep, at least half of the table is free. */
static int reserve_baseline(struct mw_rdt_baseline *table)
{
	if (table->count < table->capacity)
		return 0;
	if (sweep_dead(table))
		return -ENOMEM;
	return mw_array_reserve(table->entries, table->capacity, 2 * table->count + 1);
}

static struct baseline *obtain_baseline(struct mw_rdt_baseline *table, uint32_t rmid,
					uint32_t generation, uint32_t domain)
{
	struct baseline *entry = find_baseline(table, rmid, generation, domain);

	if (entry)
		return entry;
	if (reserve_baseline(table) ||
	    mw_index_insert(&table->index, baseline_hash(table, rmid, generation, domain),
			    table->count))
		return NULL;
	if (domain < DOMAINS_MAX && table->domains <= domain)
		table->domains = domain + 1;
	entry = &table->entries[table->count++];
	*entry = (struct baseline){
		.rmid = rmid,
		.generation = generation,
		.domain = domain,
		.level_slot = NO_SLOT,
	};
	return entry;
}

int mw_rdt_baseline_born(struct mw_rdt_baseline *baseline, uint32_t rmid, uint32_t generation,
			 uint64_t time_ns)
{
	struct baseline *state = obtain_baseline(baseline, rmid, generation, ANY_DOMAIN);

	if (!state)
		return -ENOMEM;
	state->born = true;
	state->time_ns[0] = time_ns;
	mw_rdt_baseline_died(baseline, rmid, generation - 1);
	return 0;
}

int mw_rdt_baseline_born_late(struct mw_rdt_baseline *baseline, uint32_t rmid, uint32_t generation,
			      uint64_t time_ns)
{
	struct baseline *state = obtain_baseline(baseline, rmid, generation, ANY_DOMAIN);

	if (!state)
		return -ENOMEM;
	if (state->born)
		return 0;
	/* The record of the residual occupancy may have been lost too. */
	state->residue = true;
	return mw_rdt_baseline_born(baseline, rmid, generation, time_ns);
}

void mw_rdt_baseline_died(struct mw_rdt_baseline *baseline, uint32_t rmid, uint32_t generation)
{
	struct baseline *state = find_baseline(baseline, rmid, generation, ANY_DOMAIN);

	/* The entry for ANY_DOMAIN is made first: without it, there is no other entry. */
	if (!state)
		return;
	for (uint32_t domain = 0; domain < baseline->domains; domain++) {
		struct baseline *reading = find_baseline(baseline, rmid, generation, domain);

		if (reading)
			reading->dead = true;
	}
	state->dead = true;
}

/*
 * The module sends a record of the residual occupancy only if there is some. If the first
 * reading comes without such a record, there was none.
 */
int mw_rdt_baseline_residue(struct mw_rdt_baseline *baseline,
			    const struct memwatch_record_rdt *reading, uint64_t *bytes)
{
	uint8_t status = reading->status[MEMWATCH_RDT_OCCUPANCY];
	struct baseline *all;

	if (status != MEMWATCH_STATUS_OK && status != MEMWATCH_STATUS_FIRST)
		return 0;
	all = obtain_baseline(baseline, reading->rmid, reading->generation, ANY_DOMAIN);
	if (!all)
		return -ENOMEM;
	if (status == MEMWATCH_STATUS_OK && (all->residue || !all->born))
		return 0;
	all->residue = true;
	*bytes = status == MEMWATCH_STATUS_FIRST ? reading->value[MEMWATCH_RDT_OCCUPANCY] : 0;
	return 1;
}

static void update_traffic(const struct baseline *born, struct baseline *state, unsigned int event,
			   const struct memwatch_record_rdt *reading, struct mw_rdt_delta *delta)
{
	uint64_t value = reading->value[event];

	delta->begin_ns[event] = delta->end_ns;
	delta->value[event] = 0;
	delta->repeated[event] = reading->status[event] == MEMWATCH_STATUS_STALE;
	if (reading->status[event] != MEMWATCH_STATUS_OK &&
	    reading->status[event] != MEMWATCH_STATUS_ESTIMATED)
		return;
	if (!state->has[event] && born->born) {
		delta->begin_ns[event] = mw_min_u64(born->time_ns[0], delta->end_ns);
		delta->value[event] = value;
	} else if (!state->has[event]) {
		delta->status[event] = MEMWATCH_STATUS_FIRST;
		state->unclaimed[event] = value;
	} else if (value < state->value[event]) {
		/* The counter ran backwards: how much was moved is not known. */
		delta->status[event] = MEMWATCH_STATUS_ERROR;
	} else {
		delta->begin_ns[event] = mw_min_u64(state->time_ns[event], delta->end_ns);
		delta->value[event] = value - state->value[event];
	}
	if (born->born && state->unclaimed[event]) {
		delta->begin_ns[event] = mw_min_u64(born->time_ns[0], delta->begin_ns[event]);
		delta->value[event] = mw_add_sat(delta->value[event], state->unclaimed[event]);
		state->unclaimed[event] = 0;
	}
	state->has[event] = true;
	state->value[event] = value;
	state->time_ns[event] = delta->end_ns;
}

/*
 * The domains are not read at the same time. The occupancy of a slot with a reading of one
 * domain is the sum of this reading and the last readings of the other domains.
 */
static void update_level(struct baseline *all, struct baseline *state,
			 const struct memwatch_record_rdt *reading, uint64_t slot,
			 struct mw_rdt_delta *delta)
{
	uint8_t status = reading->status[MEMWATCH_RDT_OCCUPANCY];
	uint64_t level = reading->value[MEMWATCH_RDT_OCCUPANCY];

	if (status != MEMWATCH_STATUS_OK && status != MEMWATCH_STATUS_ESTIMATED &&
	    status != MEMWATCH_STATUS_STALE)
		level = 0;
	level = mw_min_u64(level, UINT64_MAX - (all->level - state->level));
	delta->replaced = all->level_slot == slot ? all->level : 0;
	all->level = all->level - state->level + level;
	all->level_slot = slot;
	state->level = level;
	delta->value[MEMWATCH_RDT_OCCUPANCY] = all->level;
}

int mw_rdt_baseline_update(struct mw_rdt_baseline *baseline,
			   const struct memwatch_record_rdt *reading, uint64_t slot,
			   struct mw_rdt_delta *ret)
{
	uint32_t rmid = reading->rmid, generation = reading->generation;
	struct baseline *state, *all;

	if (reading->domain == ANY_DOMAIN)
		return -EINVAL;
	/* Adding the second entry may move the first, so both exist before they are used. */
	if (!obtain_baseline(baseline, rmid, generation, ANY_DOMAIN))
		return -ENOMEM;
	state = obtain_baseline(baseline, rmid, generation, reading->domain);
	all = obtain_baseline(baseline, rmid, generation, ANY_DOMAIN);
	if (!state || !all)
		return -ENOMEM;
	memset(ret, 0, sizeof(*ret));
	ret->end_ns = mw_sub_sat(reading->h.time_ns, reading->age_ns);
	memcpy(ret->status, reading->status, sizeof(reading->status));
	update_level(all, state, reading, slot, ret);
	update_traffic(all, state, MEMWATCH_RDT_MBM_TOTAL, reading, ret);
	update_traffic(all, state, MEMWATCH_RDT_MBM_LOCAL, reading, ret);
	return 0;
}
