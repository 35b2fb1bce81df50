// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which RMIDs are read when, see rdt-plan.h.
 */
#include "rdt-plan.h"

#define REST_NS (1000000000ULL - MW_RDT_ROTATION_NS)

static void plan_set_bit(u64 *words, u32 rmid)
{
	words[rmid / 64] |= 1ULL << rmid % 64;
}

static void plan_clear_bit(u64 *words, u32 rmid)
{
	words[rmid / 64] &= ~(1ULL << rmid % 64);
}

/*
 * Find the first bit at or after @from, cyclically, that is set in @words but
 * not in @but. @but may be NULL.
 */
static bool plan_find_next(const u64 *words, const u64 *but, u32 from, u32 *rmid)
{
	u32 i, at = from / 64;

	for (i = 0; i <= MW_RDT_WORDS; i++) {
		u64 word = words[at] & (but ? ~but[at] : ~0ULL);

		/*
		 * The first word is searched twice: here from @from on, and at
		 * the end from its start.
		 */
		if (!i)
			word &= ~0ULL << from % 64;
		if (word) {
			*rmid = at * 64 + __builtin_ctzll(word);
			return true;
		}
		at = (at + 1) % MW_RDT_WORDS;
	}
	return false;
}

void mw_rdt_plan_init(struct mw_rdt_plan *plan, u32 nr, u64 now)
{
	*plan = (struct mw_rdt_plan){ .nr = nr, .turn_ns = now };
}

/* A CPU has a tick that was due at @slot_ns. */
void mw_rdt_plan_slot(struct mw_rdt_plan *plan, u64 slot_ns)
{
	u32 i;

	if (slot_ns <= plan->slot_ns)
		return;
	plan->slot_ns = slot_ns;
	for (i = 0; i < MW_RDT_WORDS; i++) {
		plan->todo[i] |= plan->next[i];
		plan->next[i] = 0;
		plan->stale[i] = 0;
	}
}

/* @rmid ran on the CPU that ticks. It was last read at @read_ns. */
void mw_rdt_plan_ran(struct mw_rdt_plan *plan, u32 rmid, u64 read_ns)
{
	if (rmid < plan->nr)
		plan_set_bit(read_ns >= plan->slot_ns ? plan->next : plan->todo, rmid);
}

void mw_rdt_plan_add(struct mw_rdt_plan *plan, u32 rmid)
{
	if (rmid < plan->nr)
		plan_set_bit(plan->todo, rmid);
}

/*
 * Advance the rotation by one RMID. Returns false when it has caught up with
 * @now. The step is rounded down, so a rotation takes MW_RDT_ROTATION_NS at
 * most.
 */
bool mw_rdt_plan_turn(struct mw_rdt_plan *plan, u64 now, u32 *rmid)
{
	u64 step = MW_RDT_ROTATION_NS / plan->nr;

	if (now < plan->turn_ns + step)
		return false;
	plan->turn_ns += step;
	/* After a long pause one rotation is enough. */
	if (now - plan->turn_ns > MW_RDT_ROTATION_NS)
		plan->turn_ns = now - MW_RDT_ROTATION_NS;
	*rmid = plan->turn++;
	if (plan->turn == plan->nr)
		plan->turn = 0;
	return true;
}

/* Take the next RMID to be read. The cursor makes sure that each gets its turn. */
bool mw_rdt_plan_take(struct mw_rdt_plan *plan, u32 *rmid)
{
	if (!plan_find_next(plan->todo, (const u64 *)0, plan->cursor, rmid))
		return false;
	plan_clear_bit(plan->todo, *rmid);
	plan->cursor = *rmid + 1 < plan->nr ? *rmid + 1 : 0;
	return true;
}

/* Take an RMID that was not read in time and was not yet reported as stale. */
bool mw_rdt_plan_take_stale(struct mw_rdt_plan *plan, u32 *rmid)
{
	if (!plan_find_next(plan->todo, plan->stale, plan->cursor, rmid))
		return false;
	plan_set_bit(plan->stale, *rmid);
	return true;
}

/* Has every RMID that ran been read? */
bool mw_rdt_plan_done(const struct mw_rdt_plan *plan)
{
	u32 i;

	for (i = 0; i < MW_RDT_WORDS; i++)
		if (plan->todo[i] | plan->next[i])
			return false;
	return true;
}

/**
 * mw_rdt_plan_share - how many RMIDs a CPU may read in a tick
 * @nr: number of RMIDs
 * @budget: register operations per tick and CPU
 * @cost: register operations per RMID
 * @period_ns: period of the ticks
 *
 * Return: as many as the budget allows, and at least one; with long periods more, so
 * that one CPU alone can read all RMIDs in what the rotation leaves of a second
 */
u32 mw_rdt_plan_share(u32 nr, u32 budget, u32 cost, u64 period_ns)
{
	u32 least = (nr * period_ns + REST_NS - 1) / REST_NS;
	u32 share = cost ? budget / cost : 0;

	if (share < least)
		share = least;
	return share ? share : 1;
}
