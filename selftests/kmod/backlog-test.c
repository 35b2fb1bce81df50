/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Tests of the notices that wait and of their rate, compiled for user space.
 */
#include <string.h>

#include "../../kmod/backlog.h"
#include "../prng.h"
#include "../tap.h"

#define MS	   1000000ULL
#define PER_SECOND MEMWATCH_NOTICES_PER_SECOND

static struct mw_backlog backlog;

static void begin(void)
{
	memset(&backlog, 0, sizeof(backlog));
}

static bool put(u64 number)
{
	struct mw_notice notice = { .count = number };

	return mw_backlog_put(&backlog, &notice);
}

static void test_order(void)
{
	struct mw_notice notice;

	begin();
	tap_ok(mw_backlog_due(&backlog) == MW_BACKLOG_NEVER, "nothing is due if nothing waits");
	tap_ok(!mw_backlog_take(&backlog, 5 * MS, &notice), "nothing is taken if nothing waits");
	tap_ok(put(1), "the first notice finds the backlog empty");
	tap_ok(!put(2), "the second one does not");
	tap_eq(mw_backlog_due(&backlog), 0, "the first notices are due at once");
	tap_ok(mw_backlog_take(&backlog, 5 * MS, &notice) && notice.count == 1,
	       "the oldest notice is taken first");
	tap_eq(notice.suppressed, 0, "it stands for no other");
	tap_ok(mw_backlog_take(&backlog, 5 * MS, &notice) && notice.count == 2,
	       "the one after it is next");
	tap_ok(put(3), "a notice that follows finds the backlog empty again");
}

static void test_replaced(void)
{
	struct mw_notice notice = { 0 };
	u64 i;

	begin();
	for (i = 1; i <= 10000; i++)
		put(i);
	for (i = 1; i < PER_SECOND; i++)
		mw_backlog_take(&backlog, 0, &notice);
	tap_eq(notice.count, PER_SECOND - 1, "of very many, the oldest ones stay");
	tap_ok(mw_backlog_take(&backlog, 0, &notice), "the last one of them may be taken at once");
	tap_eq(notice.count, 10000, "it is the newest of all");
	tap_eq(notice.suppressed, 10000 - PER_SECOND, "it says how many it stands for");
	put(10001);
	tap_eq(mw_backlog_due(&backlog), 1000 * MS, "the next one is due after a second");
	tap_ok(!mw_backlog_take(&backlog, 999 * MS, &notice), "it is not taken before");
	tap_ok(mw_backlog_take(&backlog, 1000 * MS, &notice) && !notice.suppressed,
	       "it is taken then, and stands for itself");
}

static void test_take_all(void)
{
	struct mw_notice notice;
	u64 i;

	begin();
	tap_ok(!mw_backlog_take_all(&backlog, &notice), "there is no last notice of nothing");
	for (i = 1; i <= 100; i++)
		put(i);
	tap_ok(mw_backlog_take_all(&backlog, &notice) && notice.count == 100,
	       "the last notice is the newest one");
	tap_eq(notice.suppressed, 99, "it stands for all that waited");
	tap_eq(mw_backlog_due(&backlog), MW_BACKLOG_NEVER, "nothing waits after it");
}

/* Notices at random times for a long time: the rate holds in any second, none is lost. */
static void test_random(void)
{
	u64 taken[4096], now = 0, last = 0, nr = 0, put_so_far = 0, said = 0, bad = 0;
	struct mw_notice notice;
	struct prng prng = { 1 };

	begin();
	while (nr < 4000) {
		now += prng_below(&prng, 100) ? prng_below(&prng, 20 * MS) : 3000 * MS;
		for (u64 i = prng_below(&prng, 20); i > 0; i--)
			put(++put_so_far);
		while (nr < 4096 && mw_backlog_take(&backlog, now, &notice)) {
			bad += notice.count <= last;
			bad += nr >= PER_SECOND && now - taken[nr - PER_SECOND] < 1000 * MS;
			last = notice.count;
			said += notice.suppressed + 1;
			taken[nr++] = now;
		}
	}
	if (mw_backlog_take_all(&backlog, &notice))
		said += notice.suppressed + 1;
	tap_eq(bad, 0, "within any second no more than the limit is taken, in order");
	tap_eq(said, put_so_far, "taken and suppressed notices add up");
}

int main(void)
{
	tap_start();
	test_order();
	test_replaced();
	test_take_all();
	test_random();
	return tap_done();
}
