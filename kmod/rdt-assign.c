// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which RMIDs have bandwidth counters, see rdt-assign.h.
 */
#include "rdt-assign.h"

/* An RMID that has not run for this time gives its set away if few are free. */
#define IDLE_NS 100000000ULL

/* An RMID that runs keeps its set for this time although others wait. */
#define TURN_NS 50000000ULL

/* One set in SPARE is kept free for RMIDs that begin to run. */
#define SPARE 4

static void assign_set_bit(u64 *words, u32 rmid)
{
	words[rmid / 64] |= 1ULL << rmid % 64;
}

static void assign_clear_bit(u64 *words, u32 rmid)
{
	words[rmid / 64] &= ~(1ULL << rmid % 64);
}

/* The clocks of two CPUs may differ a little. */
static u64 assign_age(u64 then, u64 now)
{
	return now > then ? now - then : 0;
}

/* Changes the state of a set, and what is counted and noted because of it. */
static void assign_move(struct mw_rdt_assign *assign, struct mw_rdt_set *set, u32 state, u64 now)
{
	assign->nr_free -= set->state == MW_RDT_SET_FREE;
	assign->nr_free += state == MW_RDT_SET_FREE;
	assign->nr_leaving -= set->state == MW_RDT_SET_LEAVING;
	assign->nr_leaving += state == MW_RDT_SET_LEAVING;
	if (state == MW_RDT_SET_HELD)
		assign_set_bit(assign->held, set->rmid);
	else
		assign_clear_bit(assign->held, set->rmid);
	set->state = state;
	set->since_ns = now;
}

static void assign_give(struct mw_rdt_assign *assign, struct mw_rdt_set *set, u32 rmid, u64 now)
{
	if (set->rmid != MW_RDT_NO_RMID)
		assign_clear_bit(assign->held, set->rmid);
	assign_clear_bit(assign->waiting, rmid);
	set->rmid = rmid;
	set->fresh = true;
	set->ran_ns = now;
	set->level = 0;
	assign_move(assign, set, MW_RDT_SET_HELD, now);
}

/**
 * mw_rdt_assign_init - no RMID has counters but RMID 0
 * @assign: to be initialised
 * @nr: number of sets
 * @now: current time
 *
 * RMID 0 runs whenever nothing else does, so it keeps the first set. The caller sets
 * up the counters of that set. Where there is no set, no RMID needs to ask for one.
 */
void mw_rdt_assign_init(struct mw_rdt_assign *assign, u32 nr, u64 now)
{
	u32 i;

	*assign = (struct mw_rdt_assign){ .nr = nr, .nr_free = nr };
	for (i = 0; i < nr; i++)
		assign->set[i] = (struct mw_rdt_set){ .rmid = MW_RDT_NO_RMID };
	for (i = 0; !nr && i < MW_RDT_BITMAP; i++)
		assign->held[i] = ~0ULL;
	if (nr)
		assign_give(assign, &assign->set[0], 0, now);
}

/* The set that counts for @rmid, also if it is free; NULL if there is none. */
struct mw_rdt_set *mw_rdt_assign_find(struct mw_rdt_assign *assign, u32 rmid)
{
	u32 i;

	for (i = 0; i < assign->nr; i++)
		if (assign->set[i].rmid == rmid)
			return &assign->set[i];
	return (struct mw_rdt_set *)0;
}

/* A CPU reports which RMIDs ran: @ran is a bitmap of words of the machine, as its own are. */
void mw_rdt_assign_ran(struct mw_rdt_assign *assign, const unsigned long *ran, u64 now)
{
	const u32 bits = 8 * sizeof(*ran);
	u32 i;

	for (i = 0; i < assign->nr; i++) {
		struct mw_rdt_set *set = &assign->set[i];

		if (set->rmid != MW_RDT_NO_RMID && ran[set->rmid / bits] >> set->rmid % bits & 1)
			set->ran_ns = now;
	}
}

/* Is less lost if the RMID of @set loses its counters than if that of @best does? */
static bool assign_costs_less(const struct mw_rdt_set *set, const struct mw_rdt_set *best)
{
	return !best || set->level < best->level ||
	       (set->level == best->level && set->ran_ns < best->ran_ns);
}

/* The free set that is given away next; NULL if none is free. */
static struct mw_rdt_set *assign_find_free(struct mw_rdt_assign *assign)
{
	struct mw_rdt_set *best = (struct mw_rdt_set *)0;
	u32 i;

	for (i = 0; i < assign->nr; i++)
		if (assign->set[i].state == MW_RDT_SET_FREE &&
		    assign_costs_less(&assign->set[i], best))
			best = &assign->set[i];
	return best;
}

/**
 * mw_rdt_assign_run - an RMID that is not in @held begins to run
 * @assign: the sets
 * @rmid: the RMID
 * @now: current time
 * @at: if it gets a set: which
 * @before: if it gets a set: the RMID for which it counted, or MW_RDT_NO_RMID
 *
 * Return: &enum mw_rdt_run
 */
enum mw_rdt_run mw_rdt_assign_run(struct mw_rdt_assign *assign, u32 rmid, u64 now, u32 *at,
				  u32 *before)
{
	struct mw_rdt_set *set = mw_rdt_assign_find(assign, rmid);

	if (set) {
		set->ran_ns = now;
		assign_move(assign, set, MW_RDT_SET_HELD, now);
		return MW_RDT_RUN_KEEPS;
	}
	set = assign_find_free(assign);
	if (!set) {
		assign_set_bit(assign->waiting, rmid);
		return MW_RDT_RUN_UNCOUNTED;
	}
	*at = set - assign->set;
	*before = set->rmid;
	assign_give(assign, set, rmid, now);
	return MW_RDT_RUN_GIVEN;
}

/* The next RMID that waits; false if there is none. Those that ended no longer wait. */
static bool assign_find_waiting(struct mw_rdt_assign *assign, mw_rdt_owned_fn owned, u32 *rmid)
{
	u32 i, at;

	for (i = 0; i < MW_RDT_BITMAP && !assign->waiting[i]; i++)
		;
	if (i == MW_RDT_BITMAP)
		return false;
	for (i = 0; i < MW_RDT_RMIDS; i++) {
		at = (assign->next + i) % MW_RDT_RMIDS;
		if (!(assign->waiting[at / 64] >> at % 64 & 1))
			continue;
		if (owned(at)) {
			*rmid = at;
			return true;
		}
		assign_clear_bit(assign->waiting, at);
	}
	return false;
}

/* The set that is to leave, of those whose RMIDs have no owner or are idle. */
static struct mw_rdt_set *assign_find_idle(struct mw_rdt_assign *assign, u64 now,
					   mw_rdt_owned_fn owned)
{
	struct mw_rdt_set *best = (struct mw_rdt_set *)0;
	u32 i;

	for (i = 1; i < assign->nr; i++) {
		struct mw_rdt_set *set = &assign->set[i];

		if (set->state != MW_RDT_SET_HELD ||
		    (owned(set->rmid) && assign_age(set->ran_ns, now) < IDLE_NS))
			continue;
		if (assign_costs_less(set, best))
			best = set;
	}
	return best;
}

/* The set that has been held for longest, and long enough for a turn. */
static struct mw_rdt_set *assign_find_longest(struct mw_rdt_assign *assign, u64 now)
{
	struct mw_rdt_set *best = (struct mw_rdt_set *)0;
	u32 i;

	for (i = 1; i < assign->nr; i++) {
		struct mw_rdt_set *set = &assign->set[i];

		if (set->state == MW_RDT_SET_HELD && assign_age(set->since_ns, now) >= TURN_NS &&
		    (!best || set->since_ns < best->since_ns))
			best = set;
	}
	return best;
}

/**
 * mw_rdt_assign_choose - which set is to be read for the last time for its RMID
 * @assign: the sets
 * @now: current time
 * @settle_ns: the longest time until a domain learns that an RMID ran
 * @owned: tells whether an RMID has an owner
 * @at: set to the set
 *
 * The caller reads the set and calls mw_rdt_assign_pass().
 *
 * Return: true if there is such a set
 */
bool mw_rdt_assign_choose(struct mw_rdt_assign *assign, u64 now, u64 settle_ns,
			  mw_rdt_owned_fn owned, u32 *at)
{
	u32 spare = assign->nr > SPARE ? assign->nr / SPARE : 1, i, rmid;
	struct mw_rdt_set *set;

	for (i = 1; assign->nr_leaving && i < assign->nr; i++) {
		set = &assign->set[i];
		if (set->state == MW_RDT_SET_LEAVING &&
		    assign_age(set->since_ns, now) >= settle_ns) {
			*at = i;
			return true;
		}
	}
	if (assign->nr_free + assign->nr_leaving < spare) {
		set = assign_find_idle(assign, now, owned);
		if (set)
			assign_move(assign, set, MW_RDT_SET_LEAVING, now);
	}
	if (assign->nr_free + assign->nr_leaving || !assign_find_waiting(assign, owned, &rmid))
		return false;
	set = assign_find_longest(assign, now);
	if (set)
		*at = set - assign->set;
	return set;
}

/**
 * mw_rdt_assign_pass - a set that was chosen has been read
 * @assign: the sets
 * @at: the set
 * @now: current time
 * @owned: tells whether an RMID has an owner
 *
 * A set that was leaving is free now, unless its RMID has run meanwhile. A set whose RMID
 * runs goes to one that waits.
 *
 * Return: true if the set has another RMID now, for which its counters must be set up
 */
bool mw_rdt_assign_pass(struct mw_rdt_assign *assign, u32 at, u64 now, mw_rdt_owned_fn owned)
{
	struct mw_rdt_set *set = &assign->set[at];
	u32 rmid;

	if (set->state == MW_RDT_SET_LEAVING)
		assign_move(assign, set, MW_RDT_SET_FREE, now);
	if (set->state != MW_RDT_SET_HELD || assign_age(set->since_ns, now) < TURN_NS ||
	    !assign_find_waiting(assign, owned, &rmid))
		return false;
	assign->next = (rmid + 1) % MW_RDT_RMIDS;
	assign->turns++;
	assign_give(assign, set, rmid, now);
	return true;
}
