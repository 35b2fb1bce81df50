/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The pool of RMIDs in user space. First each promise by itself, then a long
 * random run against a model that is written in another way: it keeps a plain
 * list of free ids in order, and looks at all of them.
 *
 * Speaks TAP. An argument is the seed of the random run.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../kmod/rmid.h"
#include "../tap.h"

#define NR    8
#define LIMBO 2000000ULL

static struct mw_rmid entries[NR + 1];
static struct mw_rmid_pool pool;

static void fresh(void)
{
	mw_rmid_pool_init(&pool, entries, NR, LIMBO);
}

static int alloc(u64 now, u32 *rmid, u32 *generation)
{
	*rmid = *generation = 0;
	return mw_rmid_alloc(&pool, now, rmid, generation);
}

static void test_order(void)
{
	u32 rmid, generation, i, wrong = 0;

	fresh();
	for (i = 1; i <= NR; i++)
		wrong += alloc(0, &rmid, &generation) || rmid != i || generation != 1;
	tap_ok(!wrong, "new ids come in order, in generation 1, without limbo");
	tap_ok(alloc(0, &rmid, &generation) == -ENOSPC, "then there are none");
	tap_ok(pool.used == NR && pool.allocs == NR, "and they are counted");
	for (i = NR; i >= 1; i--)
		wrong += mw_rmid_free(&pool, i, 1, 100 + NR - i);
	for (i = NR; i >= 1; i--)
		wrong += alloc(100 + LIMBO + NR, &rmid, &generation) || rmid != i ||
			 generation != 2;
	tap_ok(!wrong, "freed ids come back in the order in which they were freed");
}

static void test_limbo(void)
{
	u32 rmid, generation, i;
	u64 ripe = 0;

	fresh();
	for (i = 0; i < NR; i++)
		alloc(0, &rmid, &generation);
	tap_ok(!mw_rmid_ripe_ns(&pool, &ripe), "with none free nobody knows when one is ripe");
	mw_rmid_free(&pool, 3, 1, 1000);
	tap_ok(mw_rmid_ripe_ns(&pool, &ripe) && ripe == 1000 + LIMBO, "it is ripe after its limbo");
	tap_ok(mw_rmid_resting(&pool, 1000 + LIMBO - 1) == 1, "one is in limbo");
	tap_ok(alloc(1000 + LIMBO - 1, &rmid, &generation) == -EAGAIN && !rmid,
	       "a ns before: not yet");
	tap_ok(mw_rmid_resting(&pool, 1000 + LIMBO) == 0, "none is in limbo");
	tap_ok(!alloc(1000 + LIMBO, &rmid, &generation) && rmid == 3 && generation == 2,
	       "at the moment: there it is");
	pool.limbo_ns = 0;
	tap_ok(!mw_rmid_free(&pool, 3, 2, 5000) && !alloc(5000, &rmid, &generation) && rmid == 3,
	       "without limbo it is ripe at once");
}

static void test_misuse(void)
{
	u32 rmid, generation;

	fresh();
	alloc(0, &rmid, &generation);
	tap_ok(mw_rmid_free(&pool, 0, 1, 0) == -EINVAL, "RMID 0 cannot be freed");
	tap_ok(mw_rmid_free(&pool, NR + 1, 1, 0) == -EINVAL, "nor one that does not exist");
	tap_ok(mw_rmid_free(&pool, ~0U, 1, 0) == -EINVAL, "nor the largest number");
	tap_ok(mw_rmid_free(&pool, 2, 0, 0) == -ESTALE, "nor one that was never handed out");
	tap_ok(mw_rmid_free(&pool, 1, 2, 0) == -ESTALE, "nor with a generation to come");
	tap_ok(!mw_rmid_free(&pool, 1, 1, 0) && mw_rmid_free(&pool, 1, 1, 0) == -ESTALE,
	       "nor twice");
	tap_ok(pool.used == 0 && pool.frees == 1, "and none of that counts");
	tap_ok(!mw_rmid_in_use(&pool, 0) && !mw_rmid_in_use(&pool, NR + 1), "no such id is in use");
}

static void test_wrap(void)
{
	u32 rmid, generation;
	u64 late = ~0ULL - 10;

	fresh();
	entries[1].generation = ~0U;
	tap_ok(!alloc(LIMBO, &rmid, &generation) && generation == 1, "generation 0 is skipped");

	fresh();
	pool.nr = 1;
	pool.head = pool.tail = 0;
	entries[1].next = MW_RMID_IN_USE;
	entries[1].generation = 1;
	mw_rmid_free(&pool, 1, 1, late);
	tap_ok(alloc(late + LIMBO - 1, &rmid, &generation) == -EAGAIN,
	       "limbo across the end of the clock: not yet");
	tap_ok(!alloc(late + LIMBO, &rmid, &generation), "limbo across the end of the clock: ripe");
}

static void test_dirt(void)
{
	static u64 dirt[NR + 1];
	u32 rmid, generation;
	u64 ripe;

	fresh();
	pool.residue = dirt;
	dirt[1] = 300;
	dirt[2] = 100;
	dirt[3] = 200;
	tap_ok(!alloc(0, &rmid, &generation) && rmid == 4, "a clean one goes before dirty ones");
	alloc(0, &rmid, &generation);
	alloc(0, &rmid, &generation);
	alloc(0, &rmid, &generation);
	tap_ok(!alloc(0, &rmid, &generation) && rmid == 8, "up to the last");
	tap_ok(!alloc(0, &rmid, &generation) && rmid == 2, "then the cleanest");
	mw_rmid_free(&pool, 8, 1, 0);
	tap_ok(!alloc(LIMBO - 1, &rmid, &generation) && rmid == 3, "but not one that has to rest");
	tap_ok(!alloc(LIMBO - 1, &rmid, &generation) && rmid == 1, "rather the dirtiest");
	mw_rmid_free(&pool, 1, 1, 0);
	mw_rmid_free(&pool, 3, 1, 0);
	pool.residue_limit = 150;
	tap_ok(!alloc(LIMBO, &rmid, &generation) && rmid == 8, "with a threshold likewise");
	tap_ok(alloc(LIMBO, &rmid, &generation) == -EAGAIN, "but what is above it rests");
	tap_ok(mw_rmid_ripe_ns(&pool, &ripe) && ripe > LIMBO && ripe < 2 * LIMBO,
	       "and nobody asks all the time");
	dirt[3] = 150;
	tap_ok(!alloc(LIMBO + 2, &rmid, &generation) && rmid == 3, "until it has decayed");
	tap_ok(alloc(LIMBO + MW_RMID_RESIDUE_NS - 1, &rmid, &generation) == -EAGAIN &&
		       !alloc(LIMBO + MW_RMID_RESIDUE_NS, &rmid, &generation) && rmid == 1,
	       "or for a second");
	tap_ok(!pool.head && pool.used == NR, "and the FIFO is whole");
	mw_rmid_free(&pool, 5, 1, 0);
	tap_ok(pool.head == 5 && pool.tail == 5, "and stays it");
}

static void test_reserve(void)
{
	u32 rmid, generation;

	fresh();
	mw_rmid_pool_reserve(&pool, 5);
	tap_ok(mw_rmid_total(&pool) == 3 && !alloc(0, &rmid, &generation) && rmid == 6,
	       "ids that are left to others are not handed out");
	tap_ok(!mw_rmid_in_use(&pool, 5) && mw_rmid_free(&pool, 5, 0, 0) == -ESTALE,
	       "nor in use, nor taken back");
	alloc(0, &rmid, &generation);
	tap_ok(!alloc(0, &rmid, &generation) && rmid == NR &&
		       alloc(0, &rmid, &generation) == -ENOSPC,
	       "the others are");
}

/* ------------------------------------------------------------- the model */

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

static u64 seed;

static u32 random_below(u32 n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 20) % n;
}

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

static int agree(const struct mw_rmid_pool *p, const struct model *m, u64 now)
{
	u32 resting = 0, i;
	u64 ripe = 0;

	for (i = 0; i < m->nr_free; i++)
		resting += m->free[i].used_before && now - m->free[i].since < LIMBO;
	for (i = 1; i <= MODEL_NR; i++)
		if (mw_rmid_in_use(p, i) != !!m->owned[i])
			return 0;
	if (mw_rmid_ripe_ns(p, &ripe) != !!m->nr_free)
		return 0;
	if (m->nr_free && ripe != (m->free[0].used_before ? m->free[0].since + LIMBO : 0))
		return 0;
	return p->used == MODEL_NR - m->nr_free && mw_rmid_resting(p, now) == resting;
}

static void test_model(unsigned int steps)
{
	struct mw_rmid *room = calloc(MODEL_NR + 1, sizeof(*room));
	static struct model m;
	struct mw_rmid_pool p;
	u32 r1, g1, r2, g2, i;
	u64 now = ~0ULL - 500 * LIMBO; /* the clock wraps on the way */
	unsigned int step, wrong = 0;
	int e1, e2;

	mw_rmid_pool_init(&p, room, MODEL_NR, LIMBO);
	for (i = 1; i <= MODEL_NR; i++)
		m.free[m.nr_free++].rmid = i;
	for (step = 0; step < steps && !wrong; step++) {
		now += random_below(LIMBO / 8);
		r1 = g1 = r2 = g2 = 0;
		if (random_below(2)) {
			e1 = mw_rmid_alloc(&p, now, &r1, &g1);
			e2 = model_alloc(&m, now, &r2, &g2);
		} else {
			/* mostly what is owned, sometimes nonsense */
			r1 = random_below(MODEL_NR + 3);
			g1 = r1 && r1 <= MODEL_NR ? m.generation[r1] - !random_below(8) : 1;
			e1 = mw_rmid_free(&p, r1, g1, now);
			e2 = model_free(&m, r1, g1, now);
			r2 = r1;
			g2 = g1;
		}
		wrong += e1 != e2 || r1 != r2 || g1 != g2 || !agree(&p, &m, now);
	}
	tap_ok(!wrong, "%u random steps agree with the model", steps);
	if (wrong)
		printf("# step %u: %d %d, rmid %u %u, generation %u %u\n", step, e1, e2, r1, r2, g1,
		       g2);
	free(room);
}

int main(int argc, char **argv)
{
	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 88172645463325252ULL;
	if (!seed)
		seed = 1;
	tap_start();
	tap_note("seed %llu", (unsigned long long)seed);
	test_order();
	test_limbo();
	test_misuse();
	test_wrap();
	test_dirt();
	test_reserve();
	test_model(1000000);
	return tap_done();
}
