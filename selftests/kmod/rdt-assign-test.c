/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Tests of the assignment of bandwidth counters to RMIDs, compiled for user space. First
 * each promise by itself, then random runs against a model of the hardware, in which a
 * counter counts what its RMID moves.
 *
 * Prints TAP. An argument is the seed of the random runs.
 */
#include <stdlib.h>
#include <string.h>

#include "../../kmod/rdt-assign.h"
#include "../../kmod/rdt-count.h"
#include "../prng.h"
#include "../tap.h"

#define MS     1000000ULL
#define SETTLE (2 * MS)
#define RMIDS  64

static struct prng prng = { .state = 1 };
static struct mw_rdt_assign sets;
static bool has_owner[RMIDS];

static bool is_owned(u32 rmid)
{
	return has_owner[rmid];
}

static enum mw_rdt_run run(u32 rmid, u64 now)
{
	u32 at, before;

	has_owner[rmid] = true;
	return mw_rdt_assign_run(&sets, rmid, now, &at, &before);
}

static void ran(u32 rmid, u64 now)
{
	unsigned long bitmap[MW_RDT_RMIDS / (8 * sizeof(unsigned long))] = { 0 };

	bitmap[rmid / (8 * sizeof(*bitmap))] = 1UL << rmid % (8 * sizeof(*bitmap));
	mw_rdt_assign_ran(&sets, bitmap, now);
}

static bool is_held(u32 rmid)
{
	return sets.held[rmid / 64] >> rmid % 64 & 1;
}

/* What a tick does; returns true if a set went to another RMID. */
static bool tick(u64 now)
{
	u32 at;

	return mw_rdt_assign_choose(&sets, now, SETTLE, is_owned, &at) &&
	       mw_rdt_assign_pass(&sets, at, now, is_owned);
}

static void begin(u32 nr)
{
	memset(has_owner, 0, sizeof(has_owner));
	mw_rdt_assign_init(&sets, nr, 0);
}

static void test_begin(void)
{
	begin(4);
	tap_ok(is_held(0), "RMID 0 has counters from the beginning");
	tap_eq(sets.nr_free, 3, "all other sets are free");
	tap_eq(run(5, 1 * MS), MW_RDT_RUN_GIVEN, "an RMID that begins to run gets a free set");
	tap_ok(is_held(5), "an RMID that got a set holds it");
	tap_ok(mw_rdt_assign_find(&sets, 5)->fresh, "a set that was given is fresh");
	run(6, 1 * MS);
	run(7, 1 * MS);
	tap_eq(run(8, 1 * MS), MW_RDT_RUN_UNCOUNTED, "an RMID gets nothing if no set is free");
	tap_ok(!mw_rdt_assign_find(&sets, 8), "an RMID that got nothing has no set");
	begin(0);
	tap_ok(is_held(9), "no RMID asks for a set where there is none");
}

static void test_leaving(void)
{
	begin(4);
	run(5, 0);
	run(6, 0);
	run(7, 0);
	has_owner[6] = false;
	tick(10 * MS);
	tap_ok(!is_held(6), "an RMID without an owner leaves at once");
	tap_eq(sets.nr_free, 0, "a set is not free before its RMID could have been reported");
	tick(10 * MS + SETTLE);
	tap_eq(sets.nr_free, 1, "a set is free after its RMID was read for the last time");
	tap_eq(run(8, 13 * MS), MW_RDT_RUN_GIVEN, "a set of an RMID that left is given again");
	tick(50 * MS);
	tap_ok(is_held(5) && is_held(7), "an RMID with an owner stays while it is not idle");
	ran(7, 90 * MS);
	ran(8, 90 * MS);
	tick(101 * MS);
	tap_ok(!is_held(5), "an RMID that has not run for 100 ms leaves");
	tap_eq(run(5, 102 * MS), MW_RDT_RUN_KEEPS, "an RMID that runs while it leaves, stays");
	tick(102 * MS + SETTLE);
	tap_eq(sets.nr_free, 0, "the set of an RMID that stays is not free");
	tick(203 * MS);
	tick(203 * MS + SETTLE);
	tap_eq(sets.nr_free, 1, "an idle RMID leaves in the end");
	tap_eq(run(is_held(7) ? 8 : 7, 206 * MS), MW_RDT_RUN_KEEPS,
	       "an RMID whose set was not given away keeps it");
}

/* What an RMID leaves in the cache may be written back, and is counted until it loses its set. */
static void test_cache(void)
{
	begin(4);
	run(5, 0);
	run(6, 0);
	run(7, 0);
	has_owner[5] = has_owner[6] = false;
	mw_rdt_assign_find(&sets, 5)->level = 100;
	tick(10 * MS);
	tap_ok(is_held(5) && !is_held(6), "of two RMIDs the one with less cache leaves");
	tick(10 * MS + SETTLE);
	tap_ok(mw_rdt_assign_find(&sets, 6), "a free set counts on for its RMID");
	run(8, 13 * MS);
	tap_ok(!mw_rdt_assign_find(&sets, 6), "a set that was given away no longer does");
}

static void test_turns(void)
{
	u64 held[RMIDS] = { 0 }, least = ~0ULL, most = 0, now;
	u32 rmid;

	begin(4);
	for (now = 0; now < 10000 * MS; now += MS) {
		for (rmid = 1; rmid <= 6; rmid++) {
			if (!is_held(rmid))
				run(rmid, now);
			ran(rmid, now);
			held[rmid] += is_held(rmid);
		}
		tick(now);
	}
	for (rmid = 1; rmid <= 6; rmid++) {
		least = held[rmid] < least ? held[rmid] : least;
		most = held[rmid] > most ? held[rmid] : most;
	}
	tap_ok(least >= 4500 && most <= 5500,
	       "six RMIDs that always run share three sets evenly: %llu to %llu of 5000 ms",
	       (unsigned long long)least, (unsigned long long)most);
	tap_ok(sets.turns <= 10000 / 50 * 3, "a turn lasts at least 50 ms: %llu turns",
	       (unsigned long long)sets.turns);
	has_owner[1] = has_owner[2] = has_owner[3] = false;
	for (; now < 10200 * MS; now += MS) {
		for (rmid = 4; rmid <= 6; rmid++) {
			if (!is_held(rmid))
				run(rmid, now);
			ran(rmid, now);
		}
		tick(now);
	}
	tap_ok(is_held(4) && is_held(5) && is_held(6),
	       "RMIDs that run have a set each when the others have ended");
}

/* ---- Random runs ---- */

/**
 * struct model - an RMID in the random runs
 * @moved: what its owner has moved
 * @partial: the owner has run without a set
 * @running: it runs now
 * @count: what the module has counted
 */
struct model {
	u64 moved;
	bool partial;
	bool running;
	u64 generation;
	struct mw_rdt_count count;
};

static struct model model[RMIDS];
static u64 hardware[MW_RDT_COUNTERS]; /* of each set */
static struct mw_rdt_format format;

static void model_run(u32 rmid, u64 now)
{
	u32 at, before;

	model[rmid].running = true;
	if (is_held(rmid))
		return;
	switch (mw_rdt_assign_run(&sets, rmid, now, &at, &before)) {
	case MW_RDT_RUN_GIVEN:
		hardware[at] = 0;
		break;
	case MW_RDT_RUN_UNCOUNTED:
		model[rmid].partial = true;
		model[rmid].count.uncounted = model[rmid].generation + 1;
		break;
	case MW_RDT_RUN_KEEPS:
		break;
	}
}

static void model_move(u32 rmid)
{
	u64 units = prng_below(&prng, 1000);
	struct mw_rdt_set *set = mw_rdt_assign_find(&sets, rmid);

	model[rmid].moved += units;
	if (set)
		hardware[set - sets.set] += units;
}

/* As the module reads an RMID. */
static void model_read(u32 rmid, u64 now)
{
	struct mw_rdt_set *set = mw_rdt_assign_find(&sets, rmid);
	struct mw_rdt_owner owner = { .generation = model[rmid].generation, .settle_ns = SETTLE };
	struct mw_rdt_count *count = &model[rmid].count;
	u64 reg[MEMWATCH_RDT_MAX] = { 0, count->prev[0], count->prev[1] };

	owner.uncounted = mw_rdt_count_take_uncounted(count, owner.generation);
	if (set) {
		if (set->fresh)
			mw_rdt_count_restart(count);
		set->fresh = false;
		reg[1] = reg[2] = hardware[set - sets.set];
	} else if (owner.uncounted) {
		reg[1] = reg[2] = MW_QM_CTR_UNAVAILABLE;
	}
	mw_rdt_count_read(count, &format, reg, &owner, now);
}

static void model_tick(u64 now)
{
	u32 at, before;

	if (!mw_rdt_assign_choose(&sets, now, SETTLE, is_owned, &at))
		return;
	before = sets.set[at].rmid;
	model_read(before, now);
	if (!mw_rdt_assign_pass(&sets, at, now, is_owned))
		return;
	model[before].partial = true;
	model[before].count.uncounted = model[before].generation + 1;
	hardware[at] = 0;
}

/* A process that runs, sleeps or ends; the RMID goes to another one after it has ended. */
static void model_step(u32 rmid, u64 now)
{
	struct model *m = &model[rmid];

	if (!has_owner[rmid]) {
		if (prng_below(&prng, 20))
			return;
		has_owner[rmid] = true;
		m->generation++;
		m->moved = 0;
		m->partial = false;
		return;
	}
	if (m->running) {
		model_run(rmid, now);
		model_move(rmid);
		ran(rmid, now);
		m->running = prng_below(&prng, 8);
	} else if (!prng_below(&prng, rmid % 8 ? 20 : 400)) {
		model_run(rmid, now);
	} else if (!prng_below(&prng, 400)) {
		has_owner[rmid] = false;
	}
}

static void test_random(void)
{
	u32 wrong = 0, exact = 0, partial = 0, twice = 0, silent = 0, rmid, i;
	u64 now = 0, sum;

	mw_rdt_format_init(&format, 0, 1, 7, true);
	begin(8);
	for (now = MS; now < 100000 * MS; now += MS) {
		for (rmid = 1; rmid < RMIDS; rmid++) {
			bool lived = has_owner[rmid];

			model_step(rmid, now);
			model_read(rmid, now);
			sum = model[rmid].count.sum[0];
			wrong += sum > model[rmid].moved;
			if (!lived || has_owner[rmid])
				continue;
			exact += !model[rmid].partial;
			partial += model[rmid].partial;
			silent += !model[rmid].partial && sum != model[rmid].moved;
		}
		model_tick(now);
		for (i = 1; i < sets.nr; i++)
			twice += sets.set[i].rmid != MW_RDT_NO_RMID &&
				 mw_rdt_assign_find(&sets, sets.set[i].rmid) != &sets.set[i];
	}
	tap_eq(wrong, 0, "no RMID of a random run has more than it moved");
	tap_eq(silent, 0, "an RMID that always had counters when it ran has all that it moved");
	tap_eq(twice, 0, "no RMID has two sets");
	tap_ok(is_held(0), "RMID 0 keeps its set");
	tap_ok(exact > 100 && partial > 100,
	       "the random run has processes of both kinds: %u counted, %u in part", exact,
	       partial);
	tap_ok(sets.turns > 100, "the random run has many turns: %llu",
	       (unsigned long long)sets.turns);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		prng.state = strtoull(argv[1], NULL, 0);
	tap_start();
	tap_note("seed %llu", (unsigned long long)prng.state);
	test_begin();
	test_leaving();
	test_cache();
	test_turns();
	test_random();
	return tap_done();
}
