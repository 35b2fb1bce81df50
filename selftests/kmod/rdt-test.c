/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The arithmetic of RDT counters and the plan of readings in user space. First
 * each promise by itself, then random runs against models: a counter that is
 * kept in 128 bits and seen through a narrow register, and a domain whose
 * readings are compared with what ran.
 *
 * Speaks TAP. An argument is the seed of the random runs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../kmod/rdt-count.h"
#include "../../kmod/rdt-plan.h"
#include "../tap.h"

#define ERROR_BIT	(1ULL << 63)
#define UNAVAILABLE_BIT (1ULL << 62)
#define MS		1000000ULL

/* ---------------------------------------------------------------- format */

static struct mw_rdt_format intel(u32 eax)
{
	struct mw_rdt_format f;

	mw_rdt_format_init(&f, eax, 65536, 7, false);
	return f;
}

static void test_format(void)
{
	struct mw_rdt_format f;

	f = intel(0);
	tap_ok(f.width == 24 && !f.has_overflow && !f.restarts, "offset 0 is 24 bits on Intel");
	f = intel(8);
	tap_ok(f.width == 32, "offset 8 is 32 bits");
	f = intel(0x126);
	tap_ok(f.width == 61 && f.has_overflow, "bit 61 is no data where it says overflow");
	f = intel(0xff);
	tap_ok(f.width == 62, "no width reaches the status bits");
	mw_rdt_format_init(&f, 0, 64, 3, true);
	tap_ok(f.width == 44 && f.restarts && f.scale == 64, "offset 0 is 44 bits on AMD");
	mw_rdt_format_init(&f, 12, 64, 3, true);
	tap_ok(f.width == 36, "an offset that AMD states is taken");
	tap_ok(mw_rdt_bytes(&f, 1, 3, true) == 192, "the scale is the machine's");
}

static void test_decode(void)
{
	struct mw_rdt_format plain = intel(0), over = intel(0x100);
	u64 data;

	tap_ok(mw_rdt_decode(&plain, 77, &data) == MEMWATCH_STATUS_OK && data == 77, "data");
	tap_ok(mw_rdt_decode(&plain, ERROR_BIT | 77, &data) == MEMWATCH_STATUS_ERROR,
	       "bit 63: error");
	tap_ok(mw_rdt_decode(&plain, UNAVAILABLE_BIT | 77, &data) == MEMWATCH_STATUS_UNAVAILABLE,
	       "bit 62: unavailable");
	tap_ok(mw_rdt_decode(&plain, ERROR_BIT | UNAVAILABLE_BIT, &data) == MEMWATCH_STATUS_ERROR,
	       "both: error");
	tap_ok(mw_rdt_decode(&over, 1ULL << 61 | 5, &data) == MEMWATCH_STATUS_OK && data == 5,
	       "the overflow bit is masked");
	tap_ok(mw_rdt_delta(&plain, 0xfffff0, 0x10) == 0x20, "24 bits wrap");
	tap_ok(mw_rdt_delta(&plain, 0x10, 0x10) == 0, "no difference is no difference");
}

/* The factor as the erratum's document has it, in decimal. */
static void test_correction(void)
{
	struct mw_rdt_format f = intel(0);

	mw_rdt_format_correct(&f, 143); /* 144 RMIDs: row 18 */
	tap_ok(mw_rdt_bytes(&f, 128, 1000000, true) / 65536 == 1185255 ||
		       mw_rdt_bytes(&f, 128, 1000000, true) / 65536 == 1185254,
	       "144 RMIDs: those above 127 count 1.185255 times");
	tap_ok(mw_rdt_bytes(&f, 127, 1000000, true) == 1000000ULL * 65536,
	       "those up to it as they are");
	tap_ok(mw_rdt_bytes(&f, 128, 1000000, false) == 1000000ULL * 65536, "occupancy never");
	f = intel(0);
	mw_rdt_format_correct(&f, 55); /* 56 RMIDs: row 7 */
	tap_ok(mw_rdt_bytes(&f, 48, 1ULL << 40, true) / 65536 / 1000000 == 1256584,
	       "56 RMIDs: 1.142857, without overflow");
	f = intel(0);
	mw_rdt_format_correct(&f, 511);
	tap_ok(f.cf_threshold == ~0U, "a number that the table does not have: none");
	f = intel(0);
	mw_rdt_format_correct(&f, 6);
	tap_ok(f.cf_threshold == ~0U, "fewer than eight: none");
}

/* ---------------------------------------------------------------- counts */

static const struct mw_rdt_owner first = { 1, 0, 2 * MS };

static void read3(struct mw_rdt_count *c, const struct mw_rdt_format *f, u64 occupancy, u64 total,
		  u64 local, const struct mw_rdt_owner *owner, u64 now)
{
	const u64 reg[MEMWATCH_RDT_MAX] = { occupancy, total, local };

	mw_rdt_count_read(c, f, reg, owner, now);
}

static void begin3(struct mw_rdt_count *c, const struct mw_rdt_format *f, u64 total, u32 generation)
{
	const u64 reg[MEMWATCH_RDT_MAX] = { 0, total, total };

	memset(c, 0, sizeof(*c));
	mw_rdt_count_begin(c, f, reg, generation, 1 * MS);
}

static struct memwatch_record_rdt show(const struct mw_rdt_count *c, const struct mw_rdt_format *f)
{
	struct memwatch_record_rdt rec = { .h.type = MEMWATCH_RECORD_RDT };

	mw_rdt_count_show(c, f, 5, &rec);
	return rec;
}

static void test_counts(void)
{
	struct mw_rdt_format f = intel(0);
	struct memwatch_record_rdt r;
	struct mw_rdt_count c;

	begin3(&c, &f, 0xfffff0, 1);
	read3(&c, &f, 10, 0x10, 0xfffff8, &first, 3 * MS);
	r = show(&c, &f);
	tap_ok(r.value[1] == 0x20 * 65536 && r.value[2] == 8 * 65536 && r.value[0] == 655360 &&
		       r.status[0] == MEMWATCH_STATUS_OK && r.status[1] == MEMWATCH_STATUS_OK,
	       "a counter that starts anywhere and wraps");
	read3(&c, &f, ERROR_BIT, ERROR_BIT, 0, &first, 4 * MS);
	r = show(&c, &f);
	tap_ok(r.status[0] == MEMWATCH_STATUS_ERROR && r.status[1] == MEMWATCH_STATUS_ERROR &&
		       !r.value[0] && !r.value[1] && r.status[2] == MEMWATCH_STATUS_OK,
	       "an error has no number");
	read3(&c, &f, 1, 0x30, 0, &first, 5 * MS);
	r = show(&c, &f);
	tap_ok(r.value[1] == 0x40 * 65536 && r.status[1] == MEMWATCH_STATUS_OK,
	       "and does not move the baseline");
	read3(&c, &f, 1, UNAVAILABLE_BIT, 0, &first, 6 * MS);
	r = show(&c, &f);
	tap_ok(r.status[1] == MEMWATCH_STATUS_UNAVAILABLE && !r.value[1],
	       "unavailable has no number");
	read3(&c, &f, 1, 0x35, 0, &first, 7 * MS);
	r = show(&c, &f);
	tap_ok(r.status[1] == MEMWATCH_STATUS_ESTIMATED && r.value[1] == 0x40 * 65536,
	       "Intel: then a new baseline, a lower bound");
	read3(&c, &f, 1, 0x36, 0, &first, 8 * MS);
	r = show(&c, &f);
	tap_ok(r.status[1] == MEMWATCH_STATUS_OK && r.value[1] == 0x41 * 65536,
	       "and on from there");
}

static void test_amd(void)
{
	struct memwatch_record_rdt r;
	struct mw_rdt_format f;
	struct mw_rdt_count c;

	mw_rdt_format_init(&f, 0, 64, 3, true);
	begin3(&c, &f, 1000000, 1);
	read3(&c, &f, 0, UNAVAILABLE_BIT, 0, &first, 3 * MS);
	read3(&c, &f, 0, 7, 0, &first, 4 * MS);
	r = show(&c, &f);
	tap_ok(r.status[1] == MEMWATCH_STATUS_OK && r.value[1] == 7 * 64,
	       "AMD: a counter that was unavailable restarts at 0");
	tap_ok(r.status[2] == MEMWATCH_STATUS_UNAVAILABLE,
	       "an event that is not there is unavailable");
	begin3(&c, &f, UNAVAILABLE_BIT, 1);
	read3(&c, &f, 0, 9, 0, &first, 4 * MS);
	r = show(&c, &f);
	tap_ok(r.value[1] == 9 * 64 && r.status[1] == MEMWATCH_STATUS_OK,
	       "AMD: likewise if it was at the baseline");
	begin3(&c, &f, 100, 1);
	read3(&c, &f, 0, UNAVAILABLE_BIT, 0, &first, 3 * MS);
	read3(&c, &f, 0, 150, 0, &first, 4 * MS);
	r = show(&c, &f);
	tap_ok(r.status[1] == MEMWATCH_STATUS_ESTIMATED && r.value[1] == 50 * 64,
	       "AMD: if it may also have gone on, the lower of the two");
}

/* The RMID changes hands: what belongs to whom? */
static void test_generations(void)
{
	struct mw_rdt_owner second = { 2, 10 * MS, 2 * MS };
	struct mw_rdt_format f = intel(0);
	struct memwatch_record_rdt r;
	struct mw_rdt_count c;

	begin3(&c, &f, 100, 1);
	mw_rdt_count_ran(&c, 9 * MS);
	read3(&c, &f, 0, 150, 0, &first, 11 * MS);
	r = show(&c, &f);
	tap_ok(r.generation == 1 && r.value[1] == 50 * 65536,
	       "the last reading is the old owner's");
	mw_rdt_count_ran(&c, 13 * MS);
	read3(&c, &f, 0, 157, 0, &second, 14 * MS);
	r = show(&c, &f);
	tap_ok(r.generation == 2 && r.value[1] == 7 * 65536 && r.status[1] == MEMWATCH_STATUS_OK,
	       "the next owner starts there, at 0");

	begin3(&c, &f, 100, 1);
	mw_rdt_count_ran(&c, 9 * MS);
	read3(&c, &f, 0, 150, 0, &second, 14 * MS);
	r = show(&c, &f);
	tap_ok(r.generation == 2 && r.status[1] == MEMWATCH_STATUS_ESTIMATED && !r.value[1],
	       "both in one difference: nobody's, and it says so");

	begin3(&c, &f, 100, 1);
	tap_ok(show(&c, &f).status[1] == MEMWATCH_STATUS_OK && !show(&c, &f).value[1],
	       "a baseline is a reading of 0");
	mw_rdt_count_ran(&c, 9 * MS);
	read3(&c, &f, 0, ERROR_BIT, 0, &second, 14 * MS);
	read3(&c, &f, 0, 150, 0, &second, 15 * MS);
	r = show(&c, &f);
	tap_ok(r.status[1] == MEMWATCH_STATUS_ESTIMATED && !r.value[1],
	       "nor when an error came in between");

	begin3(&c, &f, 100, 1);
	mw_rdt_count_ran(&c, 12 * MS);
	read3(&c, &f, 0, 150, 0, &second, 14 * MS);
	r = show(&c, &f);
	tap_ok(r.status[1] == MEMWATCH_STATUS_OK && r.value[1] == 50 * 65536,
	       "only the new one ran here: it is all his");
	begin3(&c, &f, 100, 1);
	read3(&c, &f, 0, 150, 0, &second, 11 * MS);
	tap_ok(show(&c, &f).status[1] == MEMWATCH_STATUS_ESTIMATED,
	       "nobody is known to have run: too early to say");
	begin3(&c, &f, 100, 1);
	read3(&c, &f, 0, 150, 0, &second, 12 * MS);
	tap_ok(show(&c, &f).status[1] == MEMWATCH_STATUS_OK,
	       "but not when runs have had time to settle");
	begin3(&c, &f, 100, 1);
	mw_rdt_count_ran(&c, 9 * MS);
	read3(&c, &f, 0, 100, 0, &second, 11 * MS);
	r = show(&c, &f);
	tap_ok(r.generation == 2 && r.status[1] == MEMWATCH_STATUS_OK && !r.value[1],
	       "nor where nothing was moved at all");
}

static u64 seed = 1;

static u64 next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed * 0x2545f4914f6cdd1dULL;
}

/* A wide counter seen through a narrow register, with readings that fail. */
static void test_random_counts(void)
{
	u32 wrong = 0, round, i;

	for (round = 0; round < 2000; round++) {
		struct mw_rdt_format f = intel(next_random() % 16);
		u64 mask = (1ULL << f.width) - 1, start = next_random() & mask, truth = 0;
		struct mw_rdt_count c;
		bool missed = false;

		begin3(&c, &f, start, 1);
		for (i = 0; i < 100; i++) {
			truth += next_random() % (mask / 2) >> next_random() % f.width;
			missed = !missed && !(next_random() % 8);
			read3(&c, &f, 0, missed ? ERROR_BIT : (start + truth) & mask, 0, &first,
			      (i + 2) * MS);
			wrong += show(&c, &f).value[1] != (missed ? 0 : truth * 65536);
		}
	}
	tap_ok(!wrong, "random counters of 24 to 39 bits, seed %llu", (unsigned long long)seed);
}

/* ------------------------------------------------------------------ plan */

static struct mw_rdt_plan plan;

static u32 take_all(u32 *list)
{
	u32 n = 0;

	while (mw_rdt_plan_take(&plan, &list[n]))
		n++;
	return n;
}

static void test_plan(void)
{
	u32 list[MW_RDT_RMIDS], n, rmid;

	mw_rdt_plan_init(&plan, 512, 0);
	mw_rdt_plan_slot(&plan, 1 * MS);
	mw_rdt_plan_ran(&plan, 7, 0);
	mw_rdt_plan_ran(&plan, 511, 0);
	mw_rdt_plan_ran(&plan, 600, 0);
	n = take_all(list);
	tap_ok(n == 2 && list[0] == 7 && list[1] == 511, "what ran is read, once");
	mw_rdt_plan_ran(&plan, 7, 1 * MS + 5);
	tap_ok(!take_all(list) && !mw_rdt_plan_done(&plan), "not again in the same slot");
	mw_rdt_plan_slot(&plan, 1 * MS);
	tap_ok(!take_all(list), "which another CPU does not end");
	mw_rdt_plan_slot(&plan, 2 * MS);
	tap_ok(take_all(list) == 1 && list[0] == 7 && mw_rdt_plan_done(&plan), "but in the next");
	for (rmid = 0; rmid < 512; rmid++)
		mw_rdt_plan_add(&plan, rmid);
	for (n = 0; n < 100; n++)
		mw_rdt_plan_take(&plan, &rmid);
	mw_rdt_plan_add(&plan, rmid);
	mw_rdt_plan_add(&plan, rmid - 50);
	tap_ok(take_all(list) == 414 && list[411] == 7 && list[413] == rmid,
	       "a queue too long for one tick is read in turn");
	mw_rdt_plan_add(&plan, 3);
	mw_rdt_plan_add(&plan, 300);
	n = mw_rdt_plan_take_late(&plan, &rmid) + mw_rdt_plan_take_late(&plan, &rmid) +
	    mw_rdt_plan_take_late(&plan, &rmid);
	tap_ok(n == 2, "what has to wait is told once a slot");
}

static void test_rotation(void)
{
	u64 last[MW_RDT_RMIDS] = { 0 }, now, worst = 0;
	u32 rmid, steps = 0, most = 0, n, nr = 513;

	mw_rdt_plan_init(&plan, nr, 0);
	for (now = MS; now < 5000 * MS; now += MS) {
		for (n = 0; mw_rdt_plan_turn(&plan, now, &rmid); n++) {
			if (now - last[rmid] > worst)
				worst = now - last[rmid];
			last[rmid] = now;
		}
		most = n > most ? n : most;
		steps += n;
	}
	tap_ok(worst <= MW_RDT_ROTATION_NS + MS, "the rotation comes by in %llu ms",
	       (unsigned long long)(worst / MS));
	tap_ok(most <= 1 && steps > 5 * nr, "one by one: %u in 5 s", steps);
	for (n = 0; mw_rdt_plan_turn(&plan, now + 3600000 * MS, &rmid); n++)
		;
	tap_ok(n >= nr && n <= nr + 1, "after an hour one round is enough");
	tap_ok(mw_rdt_plan_share(513, 48, 6, MS) == 8 && mw_rdt_plan_share(64, 6, 6, MS) == 1,
	       "the budget allows so many");
	tap_ok(mw_rdt_plan_share(513, 48, 6, 100 * MS) == 257, "a long period needs more");
	tap_ok(mw_rdt_plan_share(9, 0, 6, MS) == 1 && mw_rdt_plan_share(9, 12, 0, MS) == 1,
	       "one at least");
}

/*
 * Two CPUs, one domain, more that runs than can be read. Whatever ran is read
 * afterwards, nothing twice in a slot, and everything within a second.
 */
static void test_random_plan(void)
{
	static u64 read_ns[MW_RDT_RMIDS], ran_ns[MW_RDT_RMIDS];
	u32 nr = 257, share = 4, twice = 0, unread = 0, over = 0, i, n, rmid, cpu;
	u64 now, worst = 0, slot;

	memset(read_ns, 0, sizeof(read_ns));
	memset(ran_ns, 0, sizeof(ran_ns));
	mw_rdt_plan_init(&plan, nr, 0);
	for (slot = MS; slot < 8000 * MS; slot += MS) {
		for (cpu = 0; cpu < 2; cpu++) {
			u32 burst = slot < 6000 * MS ? next_random() % 12 : 0;

			now = slot + cpu * 1000 + next_random() % 500;
			mw_rdt_plan_slot(&plan, slot);
			for (i = 0; i < burst; i++) {
				rmid = next_random() % nr;
				ran_ns[rmid] = now;
				mw_rdt_plan_ran(&plan, rmid, read_ns[rmid]);
			}
			while (mw_rdt_plan_turn(&plan, now, &rmid))
				mw_rdt_plan_add(&plan, rmid);
			for (n = 0; n < share && mw_rdt_plan_take(&plan, &rmid); n++) {
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
	tap_ok(!unread, "what ran is read afterwards");
	tap_ok(!over, "never more than the share");
	tap_ok(worst <= 1000 * MS, "everything within a second: %llu ms",
	       (unsigned long long)(worst / MS));
	tap_ok(twice <= 8000 * 2 / 100, "hardly anything twice in a slot: %u", twice);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0) | 1;
	tap_start();
	test_format();
	test_decode();
	test_correction();
	test_counts();
	test_amd();
	test_generations();
	test_random_counts();
	test_plan();
	test_rotation();
	test_random_plan();
	return tap_done();
}
