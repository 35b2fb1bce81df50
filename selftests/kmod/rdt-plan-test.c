/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Tests of the plan of readings, compiled for user space. First each promise by itself,
 * then random runs, in which the readings of a domain are compared with what ran in it,
 * and threads that use one plan at the same time.
 *
 * Prints TAP. An argument is the seed of the random runs.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../kmod/rdt-plan.h"
#include "../prng.h"
#include "../tap.h"

#define MS 1000000ULL

static struct prng prng = { .state = 1 };

static struct mw_rdt_plan plan;

/* Take an RMID of the queue and release it as read. */
static bool plan_read(u32 *cursor, u32 *rmid)
{
	if (!mw_rdt_plan_take(&plan, cursor, rmid))
		return false;
	mw_rdt_plan_release(&plan, *rmid, true);
	return true;
}

static u32 plan_cursor;

static u32 plan_read_all(u32 *list)
{
	u32 n = 0;

	while (plan_read(&plan_cursor, &list[n]))
		n++;
	return n;
}

static bool plan_begin_slot(u64 slot)
{
	u64 before;

	return mw_rdt_plan_slot(&plan, slot, &before);
}

static void test_plan_slot(void)
{
	u32 list[MW_RDT_RMIDS];
	u64 before;

	plan_cursor = 0;
	mw_rdt_plan_init(&plan, 512, 0);
	tap_ok(mw_rdt_plan_slot(&plan, 1 * MS, &before), "the first tick of a slot begins it");
	tap_eq(before, 0, "the CPU that begins a slot learns which slot was before");
	mw_rdt_plan_ran(&plan, 7, 1);
	mw_rdt_plan_ran(&plan, 511, 1);
	mw_rdt_plan_ran(&plan, 600, 1);
	tap_eq(plan_read_all(list), 2, "RMIDs that ran are read, except one that does not exist");
	tap_eq(list[0], 7, "RMIDs that ran are read in order: first");
	tap_eq(list[1], 511, "RMIDs that ran are read in order: second");
	mw_rdt_plan_ran(&plan, 7, 1);
	tap_eq(plan_read_all(list), 0, "an RMID is not read twice in a slot");
	tap_ok(!mw_rdt_plan_done(&plan), "an RMID that ran after its reading is left for later");
	tap_ok(!plan_begin_slot(1 * MS), "a second tick of the same slot does not begin a slot");
	tap_eq(plan_read_all(list), 0,
	       "a second CPU that ticks in the same slot does not begin a new slot");
	tap_ok(plan_begin_slot(2 * MS), "the next slot is begun");
	tap_eq(plan_read_all(list), 1, "an RMID that was left for later is read in the next slot");
	tap_eq(list[0], 7, "the RMID that is read is the one that was left for later");
	tap_ok(mw_rdt_plan_done(&plan), "nothing is left after the next slot");
}

static void test_plan_queue(void)
{
	u32 list[MW_RDT_RMIDS], n, rmid;

	plan_begin_slot(3 * MS);
	plan_cursor = 8;
	for (rmid = 0; rmid < 512; rmid++)
		mw_rdt_plan_add(&plan, rmid);
	for (n = 0; n < 100; n++)
		plan_read(&plan_cursor, &rmid);
	mw_rdt_plan_add(&plan, rmid);
	mw_rdt_plan_add(&plan, rmid - 50);
	tap_eq(plan_read_all(list), 412,
	       "a queue that is longer than a tick's share is read to its end");
	tap_eq(list[411], 7, "a long queue is continued where the previous tick has stopped");
	plan_begin_slot(4 * MS);
	tap_eq(plan_read_all(list), 2,
	       "RMIDs that were read and added again are read in the next slot");
	tap_eq(list[1], rmid, "an RMID that was read and added again is read last");
	plan_begin_slot(5 * MS);
	mw_rdt_plan_add(&plan, 3);
	mw_rdt_plan_add(&plan, 300);
	for (n = 0; mw_rdt_plan_take_stale(&plan, 0, &rmid); n++)
		mw_rdt_plan_release(&plan, rmid, false);
	tap_eq(n, 2, "an RMID that has to wait is reported once in a slot");
	tap_eq(plan_read_all(list), 2, "an RMID that was reported is read all the same");
}

/* What one CPU has taken, no other CPU gets. */
static void test_plan_taken(void)
{
	u32 rmid, other, cursor = 0;

	mw_rdt_plan_init(&plan, 512, 0);
	plan_begin_slot(1 * MS);
	mw_rdt_plan_ran(&plan, 5, 9);
	mw_rdt_plan_ran(&plan, 5, 3);
	mw_rdt_plan_ran(&plan, 5, 4);
	tap_ok(mw_rdt_plan_take(&plan, &cursor, &rmid), "an RMID that ran is taken");
	tap_eq(mw_rdt_plan_ran_since(&plan, 5), 3, "of several runs the earliest time is known");
	tap_eq(mw_rdt_plan_ran_since(&plan, 5), 0, "a reading takes the time away");
	mw_rdt_plan_ran(&plan, 5, 11);
	cursor = 0;
	tap_ok(!mw_rdt_plan_take(&plan, &cursor, &other),
	       "an RMID that is taken is not in the queue");
	tap_ok(!mw_rdt_plan_take_one(&plan, 5), "an RMID that is taken is not taken by name");
	tap_ok(!mw_rdt_plan_take_always(&plan, 5), "an RMID that is taken is never taken");
	mw_rdt_plan_release(&plan, 5, true);
	tap_ok(!mw_rdt_plan_take_one(&plan, 5), "an RMID that was read in this slot is not taken");
	tap_ok(mw_rdt_plan_take_always(&plan, 5), "at the end it is taken nevertheless");
	mw_rdt_plan_release(&plan, 5, false);
	plan_begin_slot(2 * MS);
	tap_ok(mw_rdt_plan_take_one(&plan, 5), "a run during the reading is read in the next slot");
	tap_eq(mw_rdt_plan_ran_since(&plan, 5), 11, "the time of a run during the reading is kept");
	mw_rdt_plan_release(&plan, 5, true);
	tap_ok(mw_rdt_plan_done(&plan), "what was taken by name is no longer in the queue");
}

static void test_plan_crowded(void)
{
	u32 list[MW_RDT_RMIDS], rmid;

	mw_rdt_plan_init(&plan, 512, 0);
	plan_begin_slot(1 * MS);
	for (rmid = 0; rmid < 20; rmid++)
		mw_rdt_plan_ran(&plan, rmid, 1);
	tap_ok(!mw_rdt_plan_is_crowded(&plan), "a slot is not crowded because many RMIDs ran");
	plan_begin_slot(2 * MS);
	tap_ok(mw_rdt_plan_is_crowded(&plan), "it is crowded if many were not read in time");
	plan_read_all(list);
	for (rmid = 0; rmid < 20; rmid++)
		mw_rdt_plan_ran(&plan, rmid, 1);
	plan_begin_slot(3 * MS);
	tap_ok(mw_rdt_plan_is_crowded(&plan), "it is crowded if many ran after they were read");
	plan_read_all(list);
	for (rmid = 0; rmid < 8; rmid++)
		mw_rdt_plan_ran(&plan, rmid, 1);
	plan_begin_slot(4 * MS);
	tap_ok(!mw_rdt_plan_is_crowded(&plan),
	       "one CPU is enough for some that ran after they were read");
	plan_begin_slot(5 * MS);
	tap_ok(mw_rdt_plan_is_crowded(&plan), "it is crowded if these were not read then");
}

/* One of four CPUs reads in each slot. */
static void test_elect(void)
{
	u64 rest[4] = { 0 }, slot;
	u32 readers = 0, turns[4] = { 0 }, cpu, gaps = 0;

	mw_rdt_plan_init(&plan, 64, 0);
	for (slot = MS; slot <= 400 * MS; slot += MS)
		for (cpu = 0; cpu < 4; cpu++)
			if (mw_rdt_plan_elect(&plan, slot, MS, 4, &rest[cpu])) {
				readers++;
				turns[cpu]++;
			}
	tap_eq(readers, 400, "each slot has one reader");
	tap_eq(turns[3], 100, "the CPUs take turns, whoever ticks first");
	for (; slot <= 500 * MS; slot += MS)
		gaps += !mw_rdt_plan_elect(&plan, slot, MS, 4, &rest[2]);
	tap_ok(gaps <= 51, "a CPU that ticks alone reads in every second slot: %u gaps", gaps);
	for (gaps = 0; slot <= 600 * MS; slot += MS)
		gaps += !mw_rdt_plan_elect(&plan, slot, MS, 1, &rest[1]);
	tap_eq(gaps, 0, "the only CPU of a domain reads in every slot");
}

static void test_rotation(void)
{
	u64 last[MW_RDT_RMIDS] = { 0 }, now, worst = 0;
	u32 rmid, steps = 0, most = 0, n, i, nr = 513;

	mw_rdt_plan_init(&plan, nr, 0);
	for (now = MS; now < 5000 * MS; now += MS) {
		n = mw_rdt_plan_due(&plan, now - MS, now, MW_RDT_ROTATION_NS, &rmid);
		for (i = 0; i < n; i++, rmid = (rmid + 1) % nr) {
			if (now - last[rmid] > worst)
				worst = now - last[rmid];
			last[rmid] = now;
		}
		most = n > most ? n : most;
		steps += n;
	}
	tap_ok(worst <= MW_RDT_ROTATION_NS + MS, "the rotation reaches every RMID in %llu ms",
	       (unsigned long long)(worst / MS));
	tap_ok(most <= 1, "the rotation takes at most one RMID in a tick of 1 ms: %u", most);
	tap_ok(steps > 5 * nr, "the rotation takes every RMID five times in 5 s: %u steps", steps);
	n = mw_rdt_plan_due(&plan, now, now + 3600000 * MS, MW_RDT_ROTATION_NS, &rmid);
	tap_eq(n, nr, "the rotation takes all RMIDs after an hour without ticks");
	tap_ok(rmid < nr, "the first of them is an RMID: %u", rmid);
}

static void test_share(void)
{
	tap_eq(mw_rdt_plan_share(513, 48, 6, MS), 8, "a tick's share is the budget over the cost");
	tap_eq(mw_rdt_plan_share(64, 6, 6, MS), 1, "a budget for one reading allows one");
	tap_eq(mw_rdt_plan_share(513, 48, 6, 100 * MS), 257,
	       "with a long period the share is what the rotation needs");
	tap_eq(mw_rdt_plan_share(513, ~0U, 6, MS), 513, "a share is never more than all RMIDs");
	tap_eq(mw_rdt_plan_share(9, 0, 6, MS), 1, "without a budget one RMID is read");
	tap_eq(mw_rdt_plan_share(9, 12, 0, MS), 1, "without a cost one RMID is read");
}

/*
 * Two CPUs of one domain, on which more RMIDs run than can be read. Each is read after it
 * ran, hardly ever twice in a slot, and within a second.
 */
static void test_random_plan(void)
{
	static u64 read_ns[MW_RDT_RMIDS], ran_ns[MW_RDT_RMIDS];
	u32 nr = 257, share = 4, twice = 0, unread = 0, over = 0, i, n, rmid, cpu,
	    cursor[2] = { 0 };
	u64 now, worst = 0, slot, before;

	memset(read_ns, 0, sizeof(read_ns));
	memset(ran_ns, 0, sizeof(ran_ns));
	mw_rdt_plan_init(&plan, nr, 0);
	for (slot = MS; slot < 8000 * MS; slot += MS) {
		for (cpu = 0; cpu < 2; cpu++) {
			u32 burst = slot < 6000 * MS ? prng_below(&prng, 12) : 0;

			now = slot + cpu * 1000 + prng_below(&prng, 500);
			if (mw_rdt_plan_slot(&plan, slot, &before)) {
				n = mw_rdt_plan_due(&plan, before, slot, MW_RDT_ROTATION_NS, &rmid);
				for (; n; n--, rmid = (rmid + 1) % nr)
					mw_rdt_plan_add(&plan, rmid);
			}
			for (i = 0; i < burst; i++) {
				rmid = prng_below(&prng, nr);
				ran_ns[rmid] = now;
				mw_rdt_plan_ran(&plan, rmid, now);
			}
			for (n = 0; n < share && plan_read(&cursor[cpu], &rmid); n++) {
				twice += read_ns[rmid] >= slot;
				if (now - read_ns[rmid] > worst)
					worst = now - read_ns[rmid];
				read_ns[rmid] = now + n;
			}
			over += n > share;
		}
	}
	for (rmid = 0; rmid < nr; rmid++)
		unread += read_ns[rmid] < ran_ns[rmid];
	tap_eq(unread, 0, "every RMID of a random run is read after it ran");
	tap_eq(over, 0, "no tick of a random run reads more than its share");
	tap_ok(worst <= 1000 * MS, "every RMID of a random run is read within a second: %llu ms",
	       (unsigned long long)(worst / MS));
	tap_eq(twice, 0, "no RMID of a random run is read twice in a slot");
}

/* ---- CPUs that run at the same time ---- */

#define THREADS 4
#define ROUNDS	60000

/* By RMID: runs so far, those that were reported, and those that the last reading has seen. */
static u64 runs[MW_RDT_RMIDS], reported[MW_RDT_RMIDS], seen[MW_RDT_RMIDS];
static u32 holders[MW_RDT_RMIDS];
static u32 shared_reads, missed_since, found, slots_ms = 1;

static void thread_read(u32 rmid)
{
	u64 told = __atomic_load_n(&reported[rmid], __ATOMIC_SEQ_CST), since;

	if (__atomic_fetch_add(&holders[rmid], 1, __ATOMIC_SEQ_CST))
		__atomic_fetch_add(&shared_reads, 1, __ATOMIC_RELAXED);
	since = mw_rdt_plan_ran_since(&plan, rmid);
	if (told > seen[rmid] && !since)
		__atomic_fetch_add(&missed_since, 1, __ATOMIC_RELAXED);
	seen[rmid] = __atomic_load_n(&runs[rmid], __ATOMIC_SEQ_CST);
	__atomic_fetch_sub(&holders[rmid], 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&found, 1, __ATOMIC_RELAXED);
	mw_rdt_plan_release(&plan, rmid, true);
}

/* @rmid has run until now; tell the others, or read it here. */
static void thread_ran(u32 rmid, bool read)
{
	u64 run = __atomic_add_fetch(&runs[rmid], 1, __ATOMIC_SEQ_CST), old;

	if (read && mw_rdt_plan_take_one(&plan, rmid)) {
		thread_read(rmid);
		return;
	}
	mw_rdt_plan_ran(&plan, rmid, run);
	old = __atomic_load_n(&reported[rmid], __ATOMIC_SEQ_CST);
	while (old < run && !__atomic_compare_exchange_n(&reported[rmid], &old, run, false,
							 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

static void *thread_main(void *arg)
{
	struct prng own = { .state = prng.state + (size_t)arg };
	u32 i, rmid, cursor = 0;

	for (i = 0; i < ROUNDS; i++) {
		if (!prng_below(&own, 8))
			plan_begin_slot(__atomic_add_fetch(&slots_ms, 1, __ATOMIC_RELAXED) * MS);
		thread_ran(prng_below(&own, 40), prng_below(&own, 2));
		if (mw_rdt_plan_take(&plan, &cursor, &rmid))
			thread_read(rmid);
		if (mw_rdt_plan_take_stale(&plan, cursor, &rmid))
			mw_rdt_plan_release(&plan, rmid, false);
	}
	return NULL;
}

static void test_threads(void)
{
	pthread_t id[THREADS];
	u32 rmid, unread = 0, cursor = 0;
	size_t i;

	mw_rdt_plan_init(&plan, 40, 0);
	for (i = 0; i < THREADS; i++)
		pthread_create(&id[i], NULL, thread_main, (void *)i);
	for (i = 0; i < THREADS; i++)
		pthread_join(id[i], NULL);
	plan_begin_slot(slots_ms * MS + MS);
	while (mw_rdt_plan_take(&plan, &cursor, &rmid))
		thread_read(rmid);
	for (rmid = 0; rmid < 40; rmid++)
		unread += seen[rmid] != runs[rmid];
	tap_eq(shared_reads, 0, "no RMID is read by two threads at a time");
	tap_eq(unread, 0, "of threads that run at the same time, every run is read");
	tap_eq(missed_since, 0, "a reading knows that there was a run if it was reported before");
	tap_ok(found > ROUNDS, "the threads read many times: %u", found);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		prng.state = strtoull(argv[1], NULL, 0);
	tap_start();
	tap_note("seed %llu", (unsigned long long)prng.state);
	test_plan_slot();
	test_plan_queue();
	test_plan_taken();
	test_plan_crowded();
	test_elect();
	test_rotation();
	test_share();
	test_random_plan();
	test_threads();
	return tap_done();
}
