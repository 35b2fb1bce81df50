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

/* The first of @words, but for those in @but, from @from on and around. */
static bool plan_find_next(const u64 *words, const u64 *but, u32 from, u32 *rmid)
{
	u32 i, at = from / 64;

	for (i = 0; i <= MW_RDT_WORDS; i++) {
		u64 word = words[at] & (but ? ~but[at] : ~0ULL);

		/* The first word is looked at twice: from @from on, and in the end up to it. */
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

/* A CPU ticks that was due at @slot_ns. */
void mw_rdt_plan_slot(struct mw_rdt_plan *plan, u64 slot_ns)
{
	u32 i;

	if (slot_ns <= plan->slot_ns)
		return;
	plan->slot_ns = slot_ns;
	for (i = 0; i < MW_RDT_WORDS; i++) {
		plan->todo[i] |= plan->next[i];
		plan->next[i] = 0;
		plan->told[i] = 0;
	}
}

/* @rmid ran on the CPU that ticks; it was read at @read_ns. */
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
 * Whose turn is it in the rotation? True until it has caught up with the time.
 * The step is rounded down, so a round is at most MW_RDT_ROTATION_NS long.
 */
bool mw_rdt_plan_turn(struct mw_rdt_plan *plan, u64 now, u32 *rmid)
{
	u64 step = MW_RDT_ROTATION_NS / plan->nr;

	if (now < plan->turn_ns + step)
		return false;
	plan->turn_ns += step;
	/* One round is as good as many. */
	if (now - plan->turn_ns > MW_RDT_ROTATION_NS)
		plan->turn_ns = now - MW_RDT_ROTATION_NS;
	*rmid = plan->turn++;
	if (plan->turn == plan->nr)
		plan->turn = 0;
	return true;
}

/* What to read next. In turn, so that nothing is passed over twice. */
bool mw_rdt_plan_take(struct mw_rdt_plan *plan, u32 *rmid)
{
	if (!plan_find_next(plan->todo, (const u64 *)0, plan->cursor, rmid))
		return false;
	plan_clear_bit(plan->todo, *rmid);
	plan->cursor = *rmid + 1 < plan->nr ? *rmid + 1 : 0;
	return true;
}

/* What has to wait, and has not been said to. */
bool mw_rdt_plan_tell(struct mw_rdt_plan *plan, u32 *rmid)
{
	if (!plan_find_next(plan->todo, plan->told, plan->cursor, rmid))
		return false;
	plan_set_bit(plan->told, *rmid);
	return true;
}

/* Has everything been read that ran? */
bool mw_rdt_plan_done(const struct mw_rdt_plan *plan)
{
	u32 i;

	for (i = 0; i < MW_RDT_WORDS; i++)
		if (plan->todo[i] | plan->next[i])
			return false;
	return true;
}

/**
 * mw_rdt_plan_share - how many RMIDs a CPU may read at a tick
 * @nr: how many RMIDs there are
 * @budget: MSR operations per tick and CPU
 * @cost: of one RMID
 * @period_ns: between two ticks
 *
 * What the budget allows, and at least one; but with long periods so many that
 * one CPU alone reads all of them in what the rotation leaves of a second.
 */
u32 mw_rdt_plan_share(u32 nr, u32 budget, u32 cost, u64 period_ns)
{
	u32 least = (nr * period_ns + REST_NS - 1) / REST_NS;
	u32 share = cost ? budget / cost : 0;

	if (share < least)
		share = least;
	return share ? share : 1;
}
