// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Readings remembered. The table is swept of RMIDs that ended when it would
 * have to grow; an RMID whose end was lost goes when its next owner is born.
 */
#include "account/rdt-baseline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/timemath.h"

#define STATES_MAX 262144
#define ANY_DOMAIN UINT32_MAX /* what is known of all domains together */
#define NO_SLOT	   UINT64_MAX

struct state {
	uint32_t rmid;
	uint32_t generation;
	uint32_t domain;
	bool used;
	bool dead;
	bool born;    /* all domains: at time_ns[0] */
	bool residue; /* all domains: what it began with has been told */
	bool has[MEMWATCH_RDT_MAX];
	uint64_t time_ns[MEMWATCH_RDT_MAX];
	uint64_t value[MEMWATCH_RDT_MAX];
	uint64_t level;	     /* the last one; of all domains: their sum */
	uint64_t level_slot; /* all domains: the slot that holds it, NO_SLOT if none */
};

struct mw_rdt_baseline {
	struct state *states; /* open addressing, at most half full */
	uint32_t count;
	uint32_t size;
};

int mw_rdt_baseline_new(struct mw_rdt_baseline **ret)
{
	struct mw_rdt_baseline *baseline = calloc(1, sizeof(*baseline));

	if (!baseline)
		return -ENOMEM;
	*ret = baseline;
	return 0;
}

void mw_rdt_baseline_free(struct mw_rdt_baseline *baseline)
{
	if (!baseline)
		return;
	free(baseline->states);
	free(baseline);
}

static struct state *slot_of(struct state *states, uint32_t size, uint32_t rmid,
			     uint32_t generation, uint32_t domain)
{
	uint64_t key = ((uint64_t)rmid << 32 | generation) * 0x9e3779b97f4a7c15ULL;
	uint32_t at = (uint32_t)(((key ^ domain) * 0xff51afd7ed558ccdULL) >> 32) & (size - 1);

	while (states[at].used && (states[at].rmid != rmid || states[at].generation != generation ||
				   states[at].domain != domain))
		at = (at + 1) & (size - 1);
	return &states[at];
}

static int rebuild(struct mw_rdt_baseline *baseline)
{
	uint32_t live = 0, size = 64;
	struct state *states;

	for (uint32_t i = 0; i < baseline->size; i++)
		live += baseline->states[i].used && !baseline->states[i].dead;
	/* beyond this it is not a machine; start anew rather than grow */
	if (live > STATES_MAX)
		live = 0;
	while (size < live * 4)
		size *= 2;
	states = calloc(size, sizeof(*states));
	if (!states)
		return -ENOMEM;
	baseline->count = 0;
	for (uint32_t i = 0; live && i < baseline->size; i++) {
		const struct state *old = &baseline->states[i];

		if (!old->used || old->dead)
			continue;
		*slot_of(states, size, old->rmid, old->generation, old->domain) = *old;
		baseline->count++;
	}
	free(baseline->states);
	baseline->states = states;
	baseline->size = size;
	return 0;
}

static struct state *find(struct mw_rdt_baseline *baseline, uint32_t rmid, uint32_t generation,
			  uint32_t domain)
{
	struct state *state;

	if (!baseline->size)
		return NULL;
	state = slot_of(baseline->states, baseline->size, rmid, generation, domain);
	return state->used ? state : NULL;
}

static struct state *obtain(struct mw_rdt_baseline *baseline, uint32_t rmid, uint32_t generation,
			    uint32_t domain)
{
	struct state *state = find(baseline, rmid, generation, domain);

	if (state)
		return state;
	if (baseline->count * 2 >= baseline->size && rebuild(baseline))
		return NULL;
	state = slot_of(baseline->states, baseline->size, rmid, generation, domain);
	baseline->count++;
	*state = (struct state){
		.rmid = rmid,
		.generation = generation,
		.domain = domain,
		.used = true,
		.level_slot = NO_SLOT,
	};
	return state;
}

int mw_rdt_baseline_born(struct mw_rdt_baseline *baseline, uint32_t rmid, uint32_t generation,
			 uint64_t time_ns)
{
	struct state *state = obtain(baseline, rmid, generation, ANY_DOMAIN);

	if (!state)
		return -ENOMEM;
	state->born = true;
	state->time_ns[0] = time_ns;
	mw_rdt_baseline_died(baseline, rmid, generation - 1);
	return 0;
}

void mw_rdt_baseline_died(struct mw_rdt_baseline *baseline, uint32_t rmid, uint32_t generation)
{
	struct state *state = find(baseline, rmid, generation, ANY_DOMAIN);

	/* Domains are few and numbered from 0; those beyond go when the table starts anew. */
	for (uint32_t domain = 0; domain < 64; domain++) {
		struct state *reading = find(baseline, rmid, generation, domain);

		if (reading)
			reading->dead = true;
	}
	if (state)
		state->dead = true;
}

/* Where nothing was left there is no record of it: then the first reading tells. */
int mw_rdt_baseline_residue(struct mw_rdt_baseline *baseline,
			    const struct memwatch_record_rdt *reading, uint64_t *bytes)
{
	uint8_t status = reading->status[MEMWATCH_RDT_OCCUPANCY];
	struct state *all;

	if (status != MEMWATCH_STATUS_OK && status != MEMWATCH_STATUS_FIRST)
		return 0;
	all = obtain(baseline, reading->rmid, reading->generation, ANY_DOMAIN);
	if (!all)
		return -ENOMEM;
	if (status == MEMWATCH_STATUS_OK && (all->residue || !all->born))
		return 0;
	all->residue = true;
	*bytes = status == MEMWATCH_STATUS_FIRST ? reading->value[MEMWATCH_RDT_OCCUPANCY] : 0;
	return 1;
}

static void update_traffic(const struct state *born, struct state *state, unsigned int event,
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
	} else if (value < state->value[event]) {
		/* it cannot run backwards; what was moved meanwhile is not known */
		delta->status[event] = MEMWATCH_STATUS_ERROR;
	} else {
		delta->begin_ns[event] = mw_min_u64(state->time_ns[event], delta->end_ns);
		delta->value[event] = value - state->value[event];
	}
	state->has[event] = true;
	state->value[event] = value;
	state->time_ns[event] = delta->end_ns;
}

/*
 * Domains are not all read at the same time: a slot with a reading of one has
 * the last levels of the others added.
 */
static void update_level(struct state *all, struct state *state,
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
	struct state *state, *all;

	if (reading->domain == ANY_DOMAIN)
		return -EINVAL;
	/* The second may move the first, but then there is room for both. */
	if (!obtain(baseline, rmid, generation, ANY_DOMAIN))
		return -ENOMEM;
	state = obtain(baseline, rmid, generation, reading->domain);
	all = obtain(baseline, rmid, generation, ANY_DOMAIN);
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
