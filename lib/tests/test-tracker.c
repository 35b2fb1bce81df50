// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The tracker: allocation, free, the advance of time and assignments that are kept after
 * their end, and a long random sequence compared with a plain list.
 */
#include <errno.h>
#include <string.h>

#include <memwatch/tracker.h>

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"

static struct memwatch_ctx *ctx;
static struct memwatch_tracker *tracker;
static const struct memwatch_process *p;

static void tracker_restart(uint32_t pending_max, uint32_t processes_max)
{
	MEMWATCH_OPTS(memwatch_tracker_opts, opts, .pending_max = pending_max,
		      .processes_max = processes_max);

	memwatch_tracker_unref(tracker);
	memwatch_tracker_new(ctx, &opts, &tracker);
}

static int alloc_rmid(uint32_t rmid, uint32_t generation, uint32_t tgid, uint64_t time_ns)
{
	struct memwatch_process process = {
		.sz = sizeof(process),
		.rmid = rmid,
		.generation = generation,
		.tgid = tgid,
		.alloc_time_ns = time_ns,
		.start_time_ns = time_ns + 5,
		.comm = "name",
	};

	return memwatch_tracker_alloc(tracker, &process);
}

static int feed_record(uint16_t type, uint32_t rmid, uint32_t generation, uint64_t time_ns,
		       uint64_t alloc_ns, const char *comm)
{
	struct memwatch_record_rmid record = {
		.h = { .time_ns = time_ns, .type = type, .size = sizeof(record) },
		.rmid = rmid,
		.generation = generation,
		.tgid = 77,
		.alloc_time_ns = alloc_ns,
		.cgroup_id = time_ns,
	};

	strncpy(record.comm, comm, sizeof(record.comm) - 1);
	return memwatch_tracker_feed(tracker, &record.h);
}

static bool found(uint32_t rmid, uint32_t generation)
{
	return !memwatch_tracker_lookup(tracker, rmid, generation, &p);
}

static bool owned(uint32_t rmid, uint64_t time_ns)
{
	return !memwatch_tracker_owner(tracker, rmid, time_ns, &p);
}

static struct memwatch_tracker_stats stats(void)
{
	MEMWATCH_OPTS(memwatch_tracker_stats, now);

	memwatch_tracker_get_stats(tracker, &now);
	return now;
}

/* The assignment is known and belongs to process @tgid. */
static void expect_found(uint32_t rmid, uint32_t generation, uint32_t tgid, const char *title)
{
	p = NULL;
	found(rmid, generation);
	tap_eq(p ? p->tgid : 0, tgid, "%s", title);
}

/* At this time the RMID belongs to process @tgid; 0: to none. */
static void expect_owner(uint32_t rmid, uint64_t time_ns, uint32_t tgid, const char *title)
{
	tap_eq(owned(rmid, time_ns) ? p->tgid : 0, tgid, "%s", title);
}

static void test_advance(void)
{
	tracker_restart(0, 0);
	tap_eq(alloc_rmid(7, 1, 100, 1000), 1, "an allocation is queued");
	expect_found(7, 1, 100, "a queued assignment is found by RMID and generation");
	tap_ok(!found(7, 2), "an assignment is not found by another generation");
	tap_eq(memwatch_tracker_advance(tracker, 999), 0,
	       "an allocation does not take effect before its time");
	tap_eq(memwatch_tracker_owner(tracker, 7, 999, &p), -ENOENT,
	       "before the allocation the RMID belongs to no process");
	tap_eq(memwatch_tracker_advance(tracker, 1000), 1,
	       "an allocation takes effect at its time");
	expect_found(7, 1, 100, "a live assignment is found by RMID and generation");
	memwatch_tracker_exec(tracker, 7, 1, 1500, "other");
	memwatch_tracker_advance(tracker, 1400);
	tap_str_eq(found(7, 1) ? p->comm : NULL, "name",
		   "an exec does not change the name before its time");
	memwatch_tracker_advance(tracker, 1500);
	tap_str_eq(found(7, 1) ? p->comm : NULL, "other", "an exec changes the name at its time");
	memwatch_tracker_free(tracker, 7, 1, 2000);
	memwatch_tracker_advance(tracker, 5000);
	tap_ok(found(7, 1), "a freed assignment is still found");
	tap_ok(p->flags & MEMWATCH_PROCESS_FREED, "a freed assignment says that it is freed");
	tap_eq(p->free_time_ns, 2000, "a freed assignment has the time of its free");
	tap_eq(memwatch_tracker_retire(tracker, 2000), 0,
	       "retiring forgets only assignments freed before the time");
	tap_ok(found(7, 1), "an assignment freed at the time of the retirement is still found");
	tap_eq(memwatch_tracker_retire(tracker, 2001), 1, "retiring says how many it forgets");
	tap_ok(!found(7, 1), "a retired assignment is not found");
}

static void test_edges(void)
{
	tracker_restart(0, 0);
	alloc_rmid(3, 1, 1, 100);
	memwatch_tracker_free(tracker, 3, 1, 200);
	alloc_rmid(3, 2, 2, 300);
	memwatch_tracker_advance(tracker, 1000);
	expect_owner(3, 99, 0, "an RMID has no owner just before its allocation");
	expect_owner(3, 100, 1, "an assignment begins at the time of the allocation");
	expect_owner(3, 199, 1, "an assignment holds until just before its free");
	expect_owner(3, 200, 0, "an assignment does not hold at the time of its free");
	expect_owner(3, 299, 0, "between free and allocation the RMID belongs to no process");
	expect_owner(3, 300, 2, "the next owner begins at its allocation");
	expect_found(3, 1, 1, "the first generation of a reused RMID is its first owner");
	expect_found(3, 2, 2, "the second generation of a reused RMID is its second owner");
	tap_ok(!found(3, 3), "a generation that was never allocated is not found");
	expect_owner(4, 500, 0, "an RMID that was never allocated has no owner");
}

static void test_any_order(void)
{
	tracker_restart(0, 0);
	memwatch_tracker_free(tracker, 5, 1, 200);
	alloc_rmid(5, 2, 2, 300);
	alloc_rmid(5, 1, 1, 100);
	memwatch_tracker_advance(tracker, 1000);
	expect_owner(5, 150, 1, "an allocation that is queued later than its free is applied");
	expect_owner(5, 250, 0, "a free that is queued earlier than its allocation is applied");
	expect_owner(5, 300, 2,
		     "a later allocation that is queued before an earlier one is applied");
	tracker_restart(0, 0);
	alloc_rmid(5, 1, 1, 100);
	memwatch_tracker_free(tracker, 5, 1, 100);
	memwatch_tracker_exec(tracker, 5, 1, 100, "x");
	memwatch_tracker_advance(tracker, 100);
	tap_str_eq(found(5, 1) ? p->comm : NULL, "x",
		   "an exec at the time of the free is applied before the free");
	tap_ok(p && p->flags & MEMWATCH_PROCESS_FREED,
	       "a free at the time of the allocation is applied after the allocation");
}

static void test_existing(void)
{
	tracker_restart(0, 0);
	feed_record(MEMWATCH_RECORD_RMID_EXISTING, 9, 4, 5000, 1000, "old");
	memwatch_tracker_advance(tracker, 1000);
	tap_ok(found(9, 4), "an assignment from an EXISTING record begins at its allocation time");
	tap_ok(p->flags & MEMWATCH_PROCESS_EXISTED,
	       "an assignment whose allocation was not seen has the flag EXISTED");
	feed_record(MEMWATCH_RECORD_RMID_EXEC, 9, 4, 6000, 1000, "new");
	memwatch_tracker_advance(tracker, 6000);
	feed_record(MEMWATCH_RECORD_RMID_EXISTING, 9, 4, 7000, 1000, "new");
	memwatch_tracker_advance(tracker, 7000);
	tap_eq(found(9, 4) ? p->cgroup_id : 0, 7000, "a second dump updates the cgroup");
	tap_eq(stats().live, 1, "a second dump adds no assignment");
	tap_eq(stats().ignored, 1, "a second dump is counted as ignored");
	feed_record(MEMWATCH_RECORD_RMID_FREE, 9, 4, 8000, 1000, "new");
	memwatch_tracker_advance(tracker, 8000);
	feed_record(MEMWATCH_RECORD_RMID_EXISTING, 9, 4, 8001, 1000, "new");
	memwatch_tracker_advance(tracker, 9000);
	tap_eq(stats().live, 0, "an EXISTING record after the free does not revive the assignment");
	expect_owner(9, 8500, 0, "an EXISTING record after the free gives the RMID no owner");
	memwatch_tracker_retire(tracker, 9000);
	feed_record(MEMWATCH_RECORD_RMID_EXISTING, 9, 4, 9001, 1000, "new");
	memwatch_tracker_advance(tracker, 9500);
	tap_ok(!found(9, 4), "an EXISTING record does not revive a retired assignment");
	tap_eq(stats().live, 0, "an EXISTING record of a retired assignment adds nothing");
	feed_record(MEMWATCH_RECORD_RMID_ALLOC, 9, 5, 9600, 9600, "next");
	memwatch_tracker_advance(tracker, 9600);
	tap_eq(owned(9, 9600) ? p->generation : 0, 5,
	       "the next generation of a retired assignment is allocated as usual");
}

static void test_losses(void)
{
	tracker_restart(0, 0);
	alloc_rmid(2, 1, 1, 100);
	alloc_rmid(2, 3, 3, 900);
	memwatch_tracker_advance(tracker, 1000);
	tap_ok(found(2, 1) && p->flags & MEMWATCH_PROCESS_FREED,
	       "an assignment whose free was lost ends with the next allocation");
	tap_eq(p->free_time_ns, 900, "an assignment whose free was lost ends at that time");
	feed_record(MEMWATCH_RECORD_RMID_FREE, 6, 8, 2000, 1500, "lost");
	memwatch_tracker_advance(tracker, 2000);
	tap_str_eq(found(6, 8) ? p->comm : NULL, "lost",
		   "the record of a free replaces that of a lost allocation");
	tap_eq(p->alloc_time_ns, 1500, "the record of a free has the time of the allocation");
	memwatch_tracker_free(tracker, 50, 1, 2000);
	tap_eq(memwatch_tracker_advance(tracker, 2000), 1,
	       "a free of an unknown assignment takes effect");
	tap_ok(!found(50, 1), "a free without a process adds no assignment");
}

static void test_invalid(void)
{
	struct memwatch_record_header short_one = {
		.type = MEMWATCH_RECORD_RMID_FREE,
		.size = sizeof(short_one),
	};
	struct memwatch_record_header tick = { .type = MEMWATCH_RECORD_TICK, .size = 48 };

	tracker_restart(0, 0);
	tap_eq(alloc_rmid(0, 0, 1, 1), -EINVAL, "RMID 0, generation 0, cannot have an owner");
	tap_eq(alloc_rmid(1, 0, 1, 1), -EINVAL, "an allocation of generation 0 is refused");
	tap_eq(memwatch_tracker_feed(tracker, &short_one), -EINVAL,
	       "an RMID record that is too short is refused");
	tap_eq(memwatch_tracker_feed(tracker, &tick), 0, "a record of another type is ignored");
	tap_eq(stats().invalid, 3, "invalid records are counted");
}

/* Without the module, processes have RMID 0 and a generation, and many live at the same time. */
static void test_generations_only(void)
{
	tracker_restart(0, 0);
	for (uint32_t i = 1; i <= 1000; i++)
		alloc_rmid(0, 1001 - i, i, i);
	memwatch_tracker_advance(tracker, 1000);
	tap_eq(stats().live, 1000, "1000 generations of RMID 0 live at the same time");
	expect_found(0, 1, 1000, "a generation of RMID 0 identifies a process");
	expect_found(0, 1000, 1, "another generation of RMID 0 identifies another process");
	tap_ok(!owned(0, 1000), "RMID 0 alone identifies no process");
	memwatch_tracker_free(tracker, 0, 500, 2000);
	memwatch_tracker_advance(tracker, 2000);
	tap_eq(stats().live, 999, "a free ends one generation of RMID 0");
	tap_ok(found(0, 500) && p->flags & MEMWATCH_PROCESS_FREED,
	       "a generation of RMID 0 that has ended is still found");
	memwatch_tracker_retire(tracker, 3000);
	tap_ok(!found(0, 500), "a generation of RMID 0 that was retired is not found any more");
	tap_ok(found(0, 499) && found(0, 501), "the generations beside it are still found");
}

static void test_bounds(void)
{
	tracker_restart(16, 8);
	for (uint32_t i = 1; i <= 100; i++)
		alloc_rmid(1, i, i, i * 10);
	tap_eq(stats().pending, 16, "no more than pending_max changes are queued");
	tap_eq(stats().early, 84, "changes beyond pending_max take effect early");
	memwatch_tracker_advance(tracker, 1000);
	tap_eq(stats().live + stats().freed, 8, "no more than processes_max are kept");
	tap_eq(owned(1, 1000) ? p->generation : 0, 100, "the newest assignments are kept");
	tracker_restart(0, 4);
	for (uint32_t i = 1; i <= 10; i++)
		alloc_rmid(i, 1, i, i);
	memwatch_tracker_advance(tracker, 100);
	tap_eq(stats().live, 4, "live assignments are not evicted for new ones");
	tap_eq(stats().evicted, 6, "assignments that find no place are counted");
}

/* A list of all assignments, with which the tracker must agree at every time. */
static void test_random(void)
{
	enum { RMIDS = 12, LIVES = 3000 };
	static struct {
		uint32_t rmid, generation, tgid;
		uint64_t from, to;
	} lives[LIVES];
	uint32_t generation[RMIDS + 1] = { 0 };
	uint64_t until[RMIDS + 1] = { 0 };
	struct prng random = { 4711 };
	size_t position = 0, count = 0;
	bool same = true;

	tracker_restart(100000, 0);
	for (uint32_t i = 0; i < LIVES; i++) {
		uint32_t rmid = 1 + (uint32_t)(prng_below(&random, RMIDS));

		lives[i].rmid = rmid;
		lives[i].generation = ++generation[rmid];
		lives[i].tgid = i + 1;
		lives[i].from = until[rmid] + 2 + prng_below(&random, 50);
		lives[i].to = lives[i].from + prng_below(&random, 200);
		until[rmid] = lives[i].to;
		/* The order of queueing is random. */
		if (prng_below(&random, 2)) {
			memwatch_tracker_free(tracker, rmid, lives[i].generation, lives[i].to);
			alloc_rmid(rmid, lives[i].generation, i + 1, lives[i].from);
		} else {
			alloc_rmid(rmid, lives[i].generation, i + 1, lives[i].from);
			memwatch_tracker_free(tracker, rmid, lives[i].generation, lives[i].to);
		}
	}
	memwatch_tracker_advance(tracker, ~0ULL);
	for (uint32_t i = 0; i < LIVES; i++) {
		same &= found(lives[i].rmid, lives[i].generation) && p->tgid == lives[i].tgid;
		if (lives[i].to > lives[i].from)
			same &= owned(lives[i].rmid, lives[i].to - 1) && p->tgid == lives[i].tgid;
		same &= !owned(lives[i].rmid, lives[i].to);
		same &= !owned(lives[i].rmid, lives[i].to + 1);
	}
	tap_ok(same, "3000 assignments of 12 RMIDs are found from allocation to free and at no "
		     "other time");
	/* Other generations, whatever their hash is. */
	for (uint32_t rmid = 1; rmid <= RMIDS; rmid++) {
		for (uint32_t g = generation[rmid] + 1; g < generation[rmid] + 5000; g++)
			same &= !found(rmid, g);
	}
	tap_ok(same, "a generation that was never allocated is not found, whatever its hash");
	while (memwatch_tracker_next(tracker, &position, &p))
		count++;
	tap_eq(count, LIVES, "the walk finds all assignments");
	for (uint64_t t = 0; t < 100000; t += 100)
		memwatch_tracker_retire(tracker, t);
	memwatch_tracker_retire(tracker, ~0ULL);
	position = 0;
	tap_eq(memwatch_tracker_next(tracker, &position, &p), 0,
	       "the walk finds nothing when all are retired");
	tap_eq(stats().freed, 0, "all freed assignments are retired");
}

int main(void)
{
	tap_start();
	memwatch_ctx_new(NULL, &ctx);
	test_advance();
	test_edges();
	test_any_order();
	test_existing();
	test_losses();
	test_invalid();
	test_generations_only();
	test_bounds();
	test_random();
	memwatch_tracker_unref(tracker);
	memwatch_ctx_unref(ctx);
	return tap_done();
}
