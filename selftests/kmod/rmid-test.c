/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Tests of the module's pool of RMIDs, compiled for user space: first each promise of
 * rmid.h by itself, then a long random run against a model. The model is written in
 * another way than the pool: it keeps a plain list of the free RMIDs in order.
 *
 * Prints TAP. An argument is the seed of the random run.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../kmod/rmid.h"
#include "../prng.h"
#include "../tap.h"

#define NR    8
#define LIMBO 2000000ULL

static struct mw_rmid entries[NR + 1];
static struct mw_rmid_pool pool;

static void pool_reset(void)
{
	mw_rmid_pool_init(&pool, entries, NR, LIMBO);
}

static int pool_alloc(u64 now, u32 *rmid, u32 *generation)
{
	*rmid = *generation = 0;
	return mw_rmid_alloc(&pool, now, rmid, generation);
}

static u32 pool_resting(const struct mw_rmid_pool *p, u64 now)
{
	u32 rmid, count = 0;

	for (rmid = 1; rmid <= p->nr; rmid++)
		count += mw_rmid_is_resting(p, rmid, now);
	return count;
}

static void pool_alloc_many(u64 now, u32 n)
{
	u32 rmid, generation;

	while (n--)
		mw_rmid_alloc(&pool, now, &rmid, &generation);
}

/* Allocate at @now; the pool must return @expected. */
static void check_alloc(u64 now, u32 expected, const char *title)
{
	u32 rmid, generation;

	tap_eq(pool_alloc(now, &rmid, &generation), 0, "%s: the allocation succeeds", title);
	tap_eq(rmid, expected, "%s", title);
}

static void check_refused(u64 now, int error, const char *title)
{
	u32 rmid, generation;

	tap_eq(pool_alloc(now, &rmid, &generation), error, "%s", title);
	tap_eq(rmid, 0, "%s: no RMID is returned", title);
}

static void test_order(void)
{
	u32 rmid, generation, i, wrong = 0;

	pool_reset();
	for (i = 1; i <= NR; i++)
		wrong += pool_alloc(0, &rmid, &generation) || rmid != i || generation != 1;
	tap_eq(wrong, 0, "a new pool returns its RMIDs in order, in generation 1, without limbo");
	check_refused(0, -ENOSPC, "an allocation fails when all RMIDs are in use");
	tap_eq(pool.used, NR, "the pool counts the RMIDs in use");
	tap_eq(pool.allocs, NR, "the pool counts the allocations");
	for (i = NR; i >= 1; i--)
		wrong += mw_rmid_free(&pool, i, 1, 100 + NR - i);
	tap_eq(wrong, 0, "every RMID in use can be freed");
	for (i = NR; i >= 1; i--)
		wrong += pool_alloc(100 + LIMBO + NR, &rmid, &generation) || rmid != i ||
			 generation != 2;
	tap_eq(wrong, 0, "freed RMIDs are returned in the order in which they were freed");
}

static void test_limbo(void)
{
	u32 rmid, generation;
	u64 ripe = 0;

	pool_reset();
	pool_alloc_many(0, NR);
	tap_ok(!mw_rmid_ripe_ns(&pool, &ripe),
	       "while no RMID is free the pool knows no time at which one can be allocated");
	mw_rmid_free(&pool, 3, 1, 1000);
	tap_ok(mw_rmid_ripe_ns(&pool, &ripe), "a freed RMID can be allocated at some time");
	tap_eq(ripe, 1000 + LIMBO, "a freed RMID can be allocated when its limbo ends");
	tap_eq(pool_resting(&pool, 1000 + LIMBO - 1), 1, "one RMID is in limbo");
	check_refused(1000 + LIMBO - 1, -EAGAIN,
		      "an RMID cannot be allocated a nanosecond before its limbo ends");
	tap_eq(pool_resting(&pool, 1000 + LIMBO), 0, "no RMID is in limbo when it ends");
	tap_eq(pool_alloc(1000 + LIMBO, &rmid, &generation), 0,
	       "an RMID can be allocated when its limbo ends");
	tap_eq(rmid, 3, "the RMID whose limbo ended is returned");
	tap_eq(generation, 2, "the second allocation of an RMID is generation 2");
	pool.limbo_ns = 0;
	tap_eq(mw_rmid_free(&pool, 3, 2, 5000), 0, "an RMID of generation 2 can be freed");
	check_alloc(5000, 3, "without limbo a freed RMID can be allocated at once");
}

static void test_misuse(void)
{
	u32 rmid, generation;

	pool_reset();
	pool_alloc(0, &rmid, &generation);
	tap_eq(mw_rmid_free(&pool, 0, 1, 0), -EINVAL, "RMID 0 cannot be freed");
	tap_eq(mw_rmid_free(&pool, NR + 1, 1, 0), -EINVAL,
	       "an RMID that does not exist cannot be freed");
	tap_eq(mw_rmid_free(&pool, ~0U, 1, 0), -EINVAL, "the largest number cannot be freed");
	tap_eq(mw_rmid_free(&pool, 2, 0, 0), -ESTALE,
	       "an RMID that was never allocated cannot be freed");
	tap_eq(mw_rmid_free(&pool, 1, 2, 0), -ESTALE, "a future generation cannot be freed");
	tap_eq(mw_rmid_free(&pool, 1, 1, 0), 0, "the current generation can be freed");
	tap_eq(mw_rmid_free(&pool, 1, 1, 0), -ESTALE, "a generation cannot be freed twice");
	tap_eq(pool.used, 0, "failed calls do not change the number of RMIDs in use");
	tap_eq(pool.frees, 1, "failed calls are not counted as frees");
	tap_ok(!mw_rmid_in_use(&pool, 0), "RMID 0 is not in use");
	tap_ok(!mw_rmid_in_use(&pool, NR + 1), "an RMID that does not exist is not in use");
}

static void test_wrap(void)
{
	u32 rmid, generation;
	u64 late = ~0ULL - 10;

	pool_reset();
	entries[1].generation = ~0U;
	tap_eq(pool_alloc(LIMBO, &rmid, &generation), 0, "an RMID of the last generation is free");
	tap_eq(generation, 1, "generation 0 is skipped when the number wraps");

	pool_reset();
	pool.nr = 1;
	pool.head = pool.tail = 0;
	entries[1].next = MW_RMID_IN_USE;
	entries[1].generation = 1;
	mw_rmid_free(&pool, 1, 1, late);
	check_refused(late + LIMBO - 1, -EAGAIN, "limbo lasts until its end if the clock wraps");
	tap_eq(pool_alloc(late + LIMBO, &rmid, &generation), 0, "limbo ends if the clock wraps");
}

/* RMIDs for which the hardware has stopped to count come last. */
static void test_untracked(void)
{
	static u64 residue[NR + 1];
	static u32 untracked[NR + 1];

	pool_reset();
	pool.residue = residue;
	pool.untracked = untracked;
	untracked[1] = 2;
	untracked[2] = untracked[4] = 1;
	residue[3] = 500;
	residue[4] = 100;
	check_alloc(0, 5, "an RMID that the hardware counts for is preferred");
	residue[6] = residue[7] = residue[8] = 900;
	check_alloc(0, 3, "an RMID that is counted for is preferred to one without residue");
	check_alloc(0, 6, "of those that are counted for, the one with the least residue is next");
	check_alloc(0, 7, "an RMID with residue is next");
	check_alloc(0, 8, "the last RMID that is counted for is next");
	check_alloc(0, 2, "an RMID that is not counted for in one domain is next");
	check_alloc(0, 4, "residue decides among them");
	check_alloc(0, 1, "an RMID that is counted for nowhere is given, too");
}

static void test_residue(void)
{
	static u64 residue[NR + 1];
	u64 ripe;

	pool_reset();
	pool.residue = residue;
	residue[1] = 300;
	residue[2] = 100;
	residue[3] = 200;
	check_alloc(0, 4, "an RMID without residue is preferred");
	pool_alloc_many(0, 3);
	check_alloc(0, 8, "the last RMID without residue is preferred");
	check_alloc(0, 2, "the RMID with the least residue is next");
	mw_rmid_free(&pool, 8, 1, 0);
	check_alloc(LIMBO - 1, 3, "an RMID in limbo is not preferred for having no residue");
	check_alloc(LIMBO - 1, 1, "the RMID with the most residue is preferred to one in limbo");
	mw_rmid_free(&pool, 1, 1, 0);
	mw_rmid_free(&pool, 3, 1, 0);
	pool.residue_limit = 150;
	check_alloc(LIMBO, 8, "an RMID below the limit of residue is allocated after its limbo");
	check_refused(LIMBO, -EAGAIN, "an RMID above the limit of residue is not allocated");
	tap_eq(pool_resting(&pool, LIMBO), 2, "an RMID above the limit of residue is in limbo");
	tap_ok(mw_rmid_ripe_ns(&pool, &ripe), "an RMID above the limit can be allocated later");
	tap_ok(ripe > LIMBO, "an RMID above the limit is not tried again at once: after %llu ns",
	       (unsigned long long)(ripe - LIMBO));
	tap_ok(ripe < 2 * LIMBO,
	       "an RMID above the limit is tried again within the limbo time: after %llu ns",
	       (unsigned long long)(ripe - LIMBO));
	residue[3] = 150;
	check_alloc(LIMBO + 2, 3, "an RMID is allocated when its residue reaches the limit");
	check_refused(LIMBO + MW_RMID_RESIDUE_NS - 1, -EAGAIN,
		      "an RMID above the limit is not allocated before its longest rest ends");
	check_alloc(LIMBO + MW_RMID_RESIDUE_NS, 1,
		    "an RMID above the limit is allocated when its longest rest ends");
	tap_eq(pool.head, 0, "the FIFO is empty when the last RMID is taken from its middle");
	tap_eq(pool.used, NR, "all RMIDs are in use after allocations out of order");
	mw_rmid_free(&pool, 5, 1, 0);
	tap_eq(pool.head, 5, "a freed RMID is the head of an empty FIFO");
	tap_eq(pool.tail, 5, "a freed RMID is the tail of an empty FIFO");
	/* Its own residue is what a limit waits for; what others left there may stay for ever. */
	pool_reset();
	pool.residue = residue;
	pool.residue_limit = 150;
	for (u32 i = 1; i <= NR; i++)
		residue[i] = 300 + i;
	check_alloc(0, 1, "an RMID that was never freed is allocated whatever its residue");
	memset(residue, 0, sizeof(residue));
}

static void test_reserve(void)
{
	u32 rmid, generation;

	pool_reset();
	mw_rmid_pool_reserve(&pool, 5);
	tap_eq(mw_rmid_total(&pool), 3, "reserved RMIDs do not count as part of the pool");
	check_alloc(0, 6, "reserved RMIDs are not allocated");
	tap_ok(!mw_rmid_in_use(&pool, 5), "a reserved RMID is not in use");
	tap_eq(mw_rmid_free(&pool, 5, 0, 0), -ESTALE, "a reserved RMID cannot be freed");
	pool_alloc(0, &rmid, &generation);
	check_alloc(0, NR, "the RMIDs that are not reserved are allocated up to the last");
	check_refused(0, -ENOSPC, "an allocation fails when only reserved RMIDs are left");
}

/* ---- The model ---- */

#define MODEL_NR 48

struct model {
	struct {
		u32 rmid;
		u64 since;
		int used_before;
	} free[MODEL_NR];
	u32 nr_free;
	u32 generation[MODEL_NR + 1];
	u32 owned[MODEL_NR + 1];
};

static int model_alloc(struct model *m, u64 now, u32 *rmid, u32 *generation)
{
	if (!m->nr_free)
		return -ENOSPC;
	if (m->free[0].used_before && now - m->free[0].since < LIMBO)
		return -EAGAIN;
	*rmid = m->free[0].rmid;
	memmove(m->free, m->free + 1, --m->nr_free * sizeof(m->free[0]));
	*generation = ++m->generation[*rmid];
	m->owned[*rmid] = *generation;
	return 0;
}

static int model_free(struct model *m, u32 rmid, u32 generation, u64 now)
{
	if (!rmid || rmid > MODEL_NR)
		return -EINVAL;
	if (!m->owned[rmid] || m->owned[rmid] != generation)
		return -ESTALE;
	m->owned[rmid] = 0;
	m->free[m->nr_free].rmid = rmid;
	m->free[m->nr_free].used_before = 1;
	m->free[m->nr_free++].since = now;
	return 0;
}

/* Returns what is wrong with the pool, or NULL if it agrees with the model. */
static const char *compare_pool(const struct mw_rmid_pool *p, const struct model *m, u64 now)
{
	u32 resting = 0, i;
	u64 ripe = 0;

	for (i = 0; i < m->nr_free; i++)
		resting += m->free[i].used_before && now - m->free[i].since < LIMBO;
	for (i = 1; i <= MODEL_NR; i++)
		if (mw_rmid_in_use(p, i) != !!m->owned[i])
			return "mw_rmid_in_use()";
	if (mw_rmid_ripe_ns(p, &ripe) != !!m->nr_free)
		return "the result of mw_rmid_ripe_ns()";
	if (m->nr_free && ripe != (m->free[0].used_before ? m->free[0].since + LIMBO : 0))
		return "the time of mw_rmid_ripe_ns()";
	if (p->used != MODEL_NR - m->nr_free)
		return "the number of RMIDs in use";
	return pool_resting(p, now) == resting ? NULL : "mw_rmid_is_resting()";
}

/* One random call to both. Returns what differs, or NULL; @err: what the pool returned. */
static const char *step_model(struct prng *prng, struct mw_rmid_pool *p, struct model *m, u64 now,
			      int *err)
{
	u32 r1 = 0, g1 = 0, r2 = 0, g2 = 0;
	int expected;

	if (prng_below(prng, 2)) {
		*err = mw_rmid_alloc(p, now, &r1, &g1);
		expected = model_alloc(m, now, &r2, &g2);
	} else {
		/* Most often an RMID that is in use, sometimes none or an old generation. */
		r1 = r2 = prng_below(prng, MODEL_NR + 3);
		g1 = r1 && r1 <= MODEL_NR ? m->generation[r1] - !prng_below(prng, 8) : 1;
		g2 = g1;
		*err = mw_rmid_free(p, r1, g1, now);
		expected = model_free(m, r2, g2, now);
	}
	if (*err != expected)
		return "the error";
	if (r1 != r2)
		return "the RMID";
	if (g1 != g2)
		return "the generation";
	return compare_pool(p, m, now);
}

static void test_model(u64 seed, unsigned int steps)
{
	static const struct {
		int err;
		const char *name;
	} results[] = {
		{ 0, "success" },      { -EAGAIN, "EAGAIN" }, { -ENOSPC, "ENOSPC" },
		{ -EINVAL, "EINVAL" }, { -ESTALE, "ESTALE" },
	};
	struct mw_rmid *memory = calloc(MODEL_NR + 1, sizeof(*memory));
	u64 now = ~0ULL - 500 * LIMBO; /* so that the clock wraps during the run */
	struct prng prng = { .state = seed };
	unsigned int seen[5] = { 0 }, step, i;
	const char *difference = NULL;
	static struct model m;
	struct mw_rmid_pool p;
	int err;

	mw_rmid_pool_init(&p, memory, MODEL_NR, LIMBO);
	for (i = 1; i <= MODEL_NR; i++)
		m.free[m.nr_free++].rmid = i;
	for (step = 0; step < steps && !difference; step++) {
		now += prng_below(&prng, LIMBO / 8);
		difference = step_model(&prng, &p, &m, now, &err);
		for (i = 0; i < 5; i++)
			seen[i] += err == results[i].err;
	}
	tap_str_eq(difference, NULL, "%u random calls give what the model gives", steps);
	if (difference)
		tap_note("at call %u", step);
	tap_ok(now < LIMBO * steps, "the clock wrapped during the random calls");
	for (i = 0; i < 5; i++)
		tap_ok(seen[i], "the random calls reach the result %s: %u times", results[i].name,
		       seen[i]);
	free(memory);
}

int main(int argc, char **argv)
{
	u64 seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;

	tap_start();
	tap_note("seed %llu", (unsigned long long)seed);
	test_order();
	test_limbo();
	test_misuse();
	test_wrap();
	test_residue();
	test_untracked();
	test_reserve();
	test_model(seed, 1000000);
	return tap_done();
}
