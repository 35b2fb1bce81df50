// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The tracker: what the design promises about alloc, free, advance and names
 * that outlive their RMID, and a long random life against a plain list.
 */
#include <errno.h>
#include <string.h>

#include <memwatch/tracker.h>

#include "../../selftests/tap.h"
#include "../../selftests/prng.h"

static struct memwatch_ctx *ctx;
static struct memwatch_tracker *tracker;
static const struct memwatch_process *p;

static void start(uint32_t pending_max, uint32_t processes_max)
{
	MEMWATCH_OPTS(memwatch_tracker_opts, opts, .pending_max = pending_max,
		      .processes_max = processes_max);

	memwatch_tracker_unref(tracker);
	memwatch_tracker_new(ctx, &opts, &tracker);
}

static int alloc_rmid(uint32_t rmid, uint32_t generation, uint32_t tgid, uint64_t time_ns)
{
	struct memwatch_process process = {
		.rmid = rmid,
		.generation = generation,
		.tgid = tgid,
		.alloc_time_ns = time_ns,
		.start_time_ns = time_ns + 5,
		.comm = "name",
	};

	return memwatch_tracker_alloc(tracker, &process);
}

static int feed(uint16_t type, uint32_t rmid, uint32_t generation, uint64_t time_ns,
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

	memwatch_tracker_stats(tracker, &now);
	return now;
}

static void test_advance(void)
{
	start(0, 0);
	tap_ok(alloc_rmid(7, 1, 100, 1000) == 1 && found(7, 1) && p->tgid == 100 && !found(7, 2),
	       "an announced assignment is found by its generation");
	tap_ok(memwatch_tracker_advance(tracker, 999) == 0 &&
		       memwatch_tracker_owner(tracker, 7, 999, &p) == -ENOENT,
	       "but does not hold before its time");
	tap_ok(memwatch_tracker_advance(tracker, 1000) == 1 && found(7, 1) && p->tgid == 100,
	       "at its time it holds");
	memwatch_tracker_exec(tracker, 7, 1, 1500, "other");
	memwatch_tracker_advance(tracker, 1400);
	tap_ok(found(7, 1) && !strcmp(p->comm, "name"), "an exec waits, too");
	memwatch_tracker_advance(tracker, 1500);
	tap_ok(found(7, 1) && !strcmp(p->comm, "other"), "and then changes the name");
	memwatch_tracker_free(tracker, 7, 1, 2000);
	memwatch_tracker_advance(tracker, 5000);
	tap_ok(found(7, 1) && p->flags & MEMWATCH_PROCESS_FREED && p->free_time_ns == 2000,
	       "after the free the metadata is still there");
	tap_ok(memwatch_tracker_retire(tracker, 2000) == 0 && found(7, 1), "until its slot closes");
	tap_ok(memwatch_tracker_retire(tracker, 2001) == 1 && !found(7, 1), "and then it is not");
}

static void test_edges(void)
{
	start(0, 0);
	alloc_rmid(3, 1, 1, 100);
	memwatch_tracker_free(tracker, 3, 1, 200);
	alloc_rmid(3, 2, 2, 300);
	memwatch_tracker_advance(tracker, 1000);
	tap_ok(!owned(3, 99) && owned(3, 100) && p->tgid == 1, "it begins with the alloc");
	tap_ok(owned(3, 199) && p->tgid == 1 && !owned(3, 200), "and ends before the free");
	tap_ok(!owned(3, 299), "between free and alloc it is nobody's");
	tap_ok(owned(3, 300) && p->tgid == 2, "the next owner begins with its alloc");
	tap_ok(found(3, 1) && p->tgid == 1 && found(3, 2) && p->tgid == 2,
	       "by generation both are known: no ABA");
	tap_ok(!found(3, 3) && !owned(4, 500), "what was never given is not found");
}

static void test_any_order(void)
{
	start(0, 0);
	memwatch_tracker_free(tracker, 5, 1, 200);
	alloc_rmid(5, 2, 2, 300);
	alloc_rmid(5, 1, 1, 100);
	memwatch_tracker_advance(tracker, 1000);
	tap_ok(owned(5, 150) && p->tgid == 1 && owned(5, 300) && p->tgid == 2 && !owned(5, 250),
	       "changes may be queued in any order");
	start(0, 0);
	alloc_rmid(5, 1, 1, 100);
	memwatch_tracker_free(tracker, 5, 1, 100);
	memwatch_tracker_exec(tracker, 5, 1, 100, "x");
	memwatch_tracker_advance(tracker, 100);
	tap_ok(found(5, 1) && !strcmp(p->comm, "x") && p->flags & MEMWATCH_PROCESS_FREED,
	       "at one moment: alloc, exec, free");
}

static void test_existing(void)
{
	start(0, 0);
	feed(MEMWATCH_RECORD_RMID_EXISTING, 9, 4, 5000, 1000, "old");
	memwatch_tracker_advance(tracker, 1000);
	tap_ok(found(9, 4) && p->flags & MEMWATCH_PROCESS_EXISTED,
	       "existing holds since its alloc");
	feed(MEMWATCH_RECORD_RMID_EXEC, 9, 4, 6000, 1000, "new");
	memwatch_tracker_advance(tracker, 6000);
	feed(MEMWATCH_RECORD_RMID_EXISTING, 9, 4, 7000, 1000, "new");
	memwatch_tracker_advance(tracker, 7000);
	tap_ok(found(9, 4) && p->cgroup_id == 7000 && stats().live == 1 && stats().ignored == 1,
	       "a second dump changes nothing but the cgroup");
	feed(MEMWATCH_RECORD_RMID_FREE, 9, 4, 8000, 1000, "new");
	memwatch_tracker_advance(tracker, 8000);
	feed(MEMWATCH_RECORD_RMID_EXISTING, 9, 4, 8001, 1000, "new");
	memwatch_tracker_advance(tracker, 9000);
	tap_ok(stats().live == 0 && !owned(9, 8500), "existing after free does not bring it back");
	memwatch_tracker_retire(tracker, 9000);
	feed(MEMWATCH_RECORD_RMID_EXISTING, 9, 4, 9001, 1000, "new");
	memwatch_tracker_advance(tracker, 9500);
	tap_ok(!found(9, 4) && stats().live == 0, "not even when it has been forgotten");
	feed(MEMWATCH_RECORD_RMID_ALLOC, 9, 5, 9600, 9600, "next");
	memwatch_tracker_advance(tracker, 9600);
	tap_ok(owned(9, 9600) && p->generation == 5, "the next generation is another matter");
}

static void test_losses(void)
{
	start(0, 0);
	alloc_rmid(2, 1, 1, 100);
	alloc_rmid(2, 3, 3, 900);
	memwatch_tracker_advance(tracker, 1000);
	tap_ok(found(2, 1) && p->flags & MEMWATCH_PROCESS_FREED && p->free_time_ns == 900,
	       "a free that was lost is implied by the next alloc");
	feed(MEMWATCH_RECORD_RMID_FREE, 6, 8, 2000, 1500, "lost");
	memwatch_tracker_advance(tracker, 2000);
	tap_ok(found(6, 8) && !strcmp(p->comm, "lost") && p->alloc_time_ns == 1500,
	       "a free without its alloc says who it was");
	memwatch_tracker_free(tracker, 50, 1, 2000);
	tap_ok(memwatch_tracker_advance(tracker, 2000) == 1 && !found(50, 1),
	       "one that says nothing is ignored");
}

static void test_invalid(void)
{
	struct memwatch_record_header short_one = {
		.type = MEMWATCH_RECORD_RMID_FREE,
		.size = sizeof(short_one),
	};
	struct memwatch_record_header tick = { .type = MEMWATCH_RECORD_TICK, .size = 48 };

	start(0, 0);
	tap_ok(alloc_rmid(0, 1, 1, 1) == -EINVAL, "RMID 0 is never given");
	tap_ok(alloc_rmid(1, 0, 1, 1) == -EINVAL, "generations count from 1");
	tap_ok(memwatch_tracker_feed(tracker, &short_one) == -EINVAL, "a short record is refused");
	tap_ok(memwatch_tracker_feed(tracker, &tick) == 0, "others are not of interest");
	tap_ok(stats().invalid == 3, "and that is counted");
}

static void test_bounds(void)
{
	start(16, 8);
	for (uint32_t i = 1; i <= 100; i++)
		alloc_rmid(1, i, i, i * 10);
	tap_ok(stats().pending == 16 && stats().early == 84, "no more than so many wait");
	memwatch_tracker_advance(tracker, 1000);
	tap_ok(stats().live + stats().freed == 8 && owned(1, 1000) && p->generation == 100,
	       "no more than so many are kept, the newest");
	start(0, 4);
	for (uint32_t i = 1; i <= 10; i++)
		alloc_rmid(i, 1, i, i);
	memwatch_tracker_advance(tracker, 100);
	tap_ok(stats().live == 4 && stats().evicted == 6,
	       "live ones are not thrown out for others");
}

/* An independent list of what was queued; the tracker must agree about every moment. */
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

	start(100000, 0);
	for (uint32_t i = 0; i < LIVES; i++) {
		uint32_t rmid = 1 + (uint32_t)(prng_next(&random) % RMIDS);

		lives[i].rmid = rmid;
		lives[i].generation = ++generation[rmid];
		lives[i].tgid = i + 1;
		lives[i].from = until[rmid] + 2 + prng_next(&random) % 50;
		lives[i].to = lives[i].from + prng_next(&random) % 200;
		until[rmid] = lives[i].to;
		/* frees and allocs in an order of their own */
		if (prng_next(&random) % 2) {
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
	tap_ok(same, "3000 lives on 12 RMIDs: everybody is found where it was, and nowhere else");
	/* whatever else lies in the same place of a table */
	for (uint32_t rmid = 1; rmid <= RMIDS; rmid++) {
		for (uint32_t g = generation[rmid] + 1; g < generation[rmid] + 5000; g++)
			same &= !found(rmid, g);
	}
	tap_ok(same, "a generation that never was is not found");
	while (memwatch_tracker_next(tracker, &position, &p))
		count++;
	tap_ok(count == LIVES, "the walk finds all");
	for (uint64_t t = 0; t < 100000; t += 100)
		memwatch_tracker_retire(tracker, t);
	memwatch_tracker_retire(tracker, ~0ULL);
	position = 0;
	tap_ok(!memwatch_tracker_next(tracker, &position, &p) && stats().freed == 0,
	       "and all are forgotten in the end");
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
	test_bounds();
	test_random();
	memwatch_tracker_unref(tracker);
	memwatch_ctx_unref(ctx);
	return tap_done();
}
