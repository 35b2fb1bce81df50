/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Tests of the arithmetic of RDT counters, compiled for user space. First each promise by
 * itself, then random runs against a model: a wide counter that is seen through a narrow
 * register.
 *
 * Prints TAP. An argument is the seed of the random runs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../kmod/rdt-count.h"
#include "../prng.h"
#include "../tap.h"

#define ERROR_BIT	(1ULL << 63)
#define UNAVAILABLE_BIT (1ULL << 62)
#define MS		1000000ULL
#define INTEL_SCALE	65536
#define AMD_SCALE	64

/* ---- The format of the register ---- */

static struct mw_rdt_format intel_format(u32 eax)
{
	struct mw_rdt_format f;

	mw_rdt_format_init(&f, eax, INTEL_SCALE, 7, false);
	return f;
}

static struct mw_rdt_format amd_format(u32 eax)
{
	struct mw_rdt_format f;

	mw_rdt_format_init(&f, eax, AMD_SCALE, 3, true);
	return f;
}

static void test_format(void)
{
	struct mw_rdt_format f = intel_format(0);

	tap_eq(f.width, 24, "Intel: offset 0 means 24 bits");
	tap_ok(!f.has_overflow, "Intel: EAX 0 means that there is no overflow bit");
	tap_ok(!f.restarts, "Intel: an unavailable counter does not restart at 0");
	f = intel_format(8);
	tap_eq(f.width, 32, "Intel: offset 8 means 32 bits");
	f = intel_format(0x126);
	tap_eq(f.width, 61, "Intel: bit 61 is not data if it is the overflow bit");
	tap_ok(f.has_overflow, "Intel: bit 8 of EAX means that there is an overflow bit");
	f = intel_format(0xff);
	tap_eq(f.width, 62, "Intel: a width never includes the status bits");
	f = amd_format(0);
	tap_eq(f.width, 44, "AMD: offset 0 means 44 bits");
	tap_ok(f.restarts, "AMD: an unavailable counter restarts at 0");
	tap_eq(f.scale, AMD_SCALE, "AMD: the scale is what EBX says");
	tap_eq(mw_rdt_bytes(&f, 1, 3, true), 3 * AMD_SCALE, "AMD: bytes are units times the scale");
	f = amd_format(12);
	tap_eq(f.width, 36, "AMD: offset 12 means 36 bits");
}

static void check_decode(const struct mw_rdt_format *f, u64 reg, u8 status, const char *title)
{
	u64 data;

	tap_eq(mw_rdt_decode(f, reg, &data), status, "%s", title);
}

static void test_decode(void)
{
	struct mw_rdt_format plain = intel_format(0), over = intel_format(0x100);
	u64 data = 0;

	tap_eq(mw_rdt_decode(&plain, 77, &data), MEMWATCH_STATUS_OK,
	       "a value without status bits is OK");
	tap_eq(data, 77, "a value without status bits is the data");
	check_decode(&plain, ERROR_BIT | 77, MEMWATCH_STATUS_ERROR, "bit 63 means an error");
	check_decode(&plain, UNAVAILABLE_BIT | 77, MEMWATCH_STATUS_UNAVAILABLE,
		     "bit 62 means unavailable");
	check_decode(&plain, ERROR_BIT | UNAVAILABLE_BIT, MEMWATCH_STATUS_ERROR,
		     "bits 62 and 63 together mean an error");
	tap_eq(mw_rdt_decode(&over, 1ULL << 61 | 5, &data), MEMWATCH_STATUS_OK,
	       "a value with the overflow bit is OK");
	tap_eq(data, 5, "the overflow bit is not part of the data");
	tap_eq(mw_rdt_delta(&plain, 0xfffff0, 0x10), 0x20, "a counter of 24 bits wraps");
	tap_eq(mw_rdt_delta(&plain, 0x10, 0x10), 0, "equal values have the difference 0");
}

static u64 corrected_units(const struct mw_rdt_format *f, u32 rmid, u64 units)
{
	return mw_rdt_bytes(f, rmid, units, true) / INTEL_SCALE;
}

/* The factors are those of the erratum's document, in decimal. */
static void test_correction(void)
{
	struct mw_rdt_format f = intel_format(0);
	u64 got;

	mw_rdt_format_correct(&f, 143); /* 144 RMIDs: row 18 */
	got = corrected_units(&f, 128, 1000000);
	tap_ok(got == 1185254 || got == 1185255,
	       "144 RMIDs: bandwidth of RMIDs above 127 is multiplied by 1.185255: %llu",
	       (unsigned long long)got);
	tap_eq(corrected_units(&f, 127, 1000000), 1000000,
	       "144 RMIDs: bandwidth of RMIDs up to 127 is not corrected");
	tap_eq(mw_rdt_bytes(&f, 128, 1000000, false), 1000000ULL * INTEL_SCALE,
	       "144 RMIDs: occupancy is not corrected");
	f = intel_format(0);
	mw_rdt_format_correct(&f, 55); /* 56 RMIDs: row 7 */
	tap_eq(corrected_units(&f, 48, 1ULL << 40) / 1000000, 1256584,
	       "56 RMIDs: 2^40 units are multiplied by 1.142857 without an overflow");
	f = intel_format(0);
	mw_rdt_format_correct(&f, 511);
	tap_eq(f.cf_threshold, ~0U, "512 RMIDs: no correction, because the table has no such row");
	f = intel_format(0);
	mw_rdt_format_correct(&f, 6);
	tap_eq(f.cf_threshold, ~0U, "7 RMIDs: no correction, because the table begins at 8");
}

/* ---- Counts ---- */

enum { OCCUPANCY = MEMWATCH_RDT_OCCUPANCY, TOTAL = MEMWATCH_RDT_MBM_TOTAL, LOCAL };

static const struct mw_rdt_owner first_owner = { .generation = 1,
						 .free_ns = 0,
						 .settle_ns = 2 * MS };

/* A counter and the format of its register. */
static struct mw_rdt_count count;
static struct mw_rdt_format format;

/* Another CPU notes traffic that is not counted, while the registers are read. */
static bool note_while_read;

static void count_read(u64 occupancy, u64 total, u64 local, const struct mw_rdt_owner *owner,
		       u64 now)
{
	const u64 reg[MEMWATCH_RDT_MAX] = { occupancy, total, local };
	struct mw_rdt_owner as_read = *owner;

	as_read.uncounted = mw_rdt_count_take_uncounted(&count, owner->generation);
	if (note_while_read)
		count.uncounted = owner->generation + 1;
	mw_rdt_count_read(&count, &format, reg, &as_read, now);
}

/* Take the baseline of both bandwidth counters at 1 ms. */
static void count_begin(u64 total, u32 generation)
{
	const u64 reg[MEMWATCH_RDT_MAX] = { 0, total, total };
	const struct mw_rdt_owner owner = { .generation = generation };

	memset(&count, 0, sizeof(count));
	mw_rdt_count_begin(&count, &format, reg, &owner, 1 * MS);
}

static struct memwatch_record_rdt count_record(void)
{
	struct memwatch_record_rdt rec = { .h.type = MEMWATCH_RECORD_RDT };

	mw_rdt_count_show(&count, &format, 5, &rec);
	return rec;
}

/* What the record says about @event, in units of the register. */
static void check_count(unsigned int event, u8 status, u64 units, const char *title)
{
	struct memwatch_record_rdt rec = count_record();

	tap_eq(rec.status[event], status, "%s: status", title);
	tap_eq(rec.value[event], units * format.scale, "%s: value", title);
}

static void test_counts(void)
{
	format = intel_format(0);
	count_begin(0xfffff0, 1);
	count_read(10, 0x10, 0xfffff8, &first_owner, 3 * MS);
	check_count(OCCUPANCY, MEMWATCH_STATUS_OK, 10, "occupancy is the reading");
	check_count(TOTAL, MEMWATCH_STATUS_OK, 0x20, "a counter that wraps goes on");
	check_count(LOCAL, MEMWATCH_STATUS_OK, 8, "a counter may start anywhere");
	count_read(ERROR_BIT, ERROR_BIT, 0, &first_owner, 4 * MS);
	check_count(OCCUPANCY, MEMWATCH_STATUS_ERROR, 0, "an error of occupancy has no value");
	tap_eq(count.occupancy, 10 * format.scale, "after an error the last occupancy is kept");
	tap_eq(count.occupancy_ns, 3 * MS, "the last occupancy keeps its age");
	check_count(TOTAL, MEMWATCH_STATUS_ERROR, 0, "an error of bandwidth has no value");
	tap_eq(count_record().status[LOCAL], MEMWATCH_STATUS_OK,
	       "an error of one event does not change the status of another");
	count_read(1, 0x30, 0, &first_owner, 5 * MS);
	check_count(TOTAL, MEMWATCH_STATUS_OK, 0x40, "an error does not change the baseline");
	count_read(1, UNAVAILABLE_BIT, 0, &first_owner, 6 * MS);
	check_count(TOTAL, MEMWATCH_STATUS_UNAVAILABLE, 0, "an unavailable counter has no value");
	count_read(1, 0x35, 0, &first_owner, 7 * MS);
	check_count(
		TOTAL, MEMWATCH_STATUS_ESTIMATED, 0x40,
		"Intel: after unavailable the first reading is a baseline, the sum a lower bound");
	count_read(1, 0x36, 0, &first_owner, 8 * MS);
	check_count(TOTAL, MEMWATCH_STATUS_OK, 0x41,
		    "Intel: after unavailable the second reading counts again");
}

static void test_amd(void)
{
	format = amd_format(0);
	count_begin(1000000, 1);
	count_read(0, UNAVAILABLE_BIT, 0, &first_owner, 3 * MS);
	count_read(0, 7, 0, &first_owner, 4 * MS);
	check_count(TOTAL, MEMWATCH_STATUS_OK, 7,
		    "AMD: a counter restarts at 0 after it was unavailable");
	tap_eq(count_record().status[LOCAL], MEMWATCH_STATUS_UNAVAILABLE,
	       "AMD: an event that the processor does not have is unavailable");
	count_begin(UNAVAILABLE_BIT, 1);
	count_read(0, 9, 0, &first_owner, 4 * MS);
	check_count(TOTAL, MEMWATCH_STATUS_OK, 9,
		    "AMD: a counter restarts at 0 if it was unavailable at the baseline");
	count_begin(ERROR_BIT, 1);
	count_read(0, 1000000, 0, &first_owner, 4 * MS);
	check_count(TOTAL, MEMWATCH_STATUS_ESTIMATED, 0,
		    "AMD: what was counted before a baseline that failed is nobody's");
	count_read(0, 1000007, 0, &first_owner, 5 * MS);
	check_count(TOTAL, MEMWATCH_STATUS_OK, 7,
		    "AMD: the reading after a baseline that failed is the baseline");
	count_begin(100, 1);
	count_read(0, UNAVAILABLE_BIT, 0, &first_owner, 3 * MS);
	count_read(0, 150, 0, &first_owner, 4 * MS);
	check_count(TOTAL, MEMWATCH_STATUS_ESTIMATED, 50,
		    "AMD: the lower value is taken if the counter may not have restarted");
}

/* Counters that software assigns to an RMID, and takes away. */
static void test_assigned(void)
{
	struct mw_rdt_owner second = { .generation = 2, .free_ns = 10 * MS, .settle_ns = 2 * MS };

	format = amd_format(0);
	count_begin(100, 1);
	count_read(0, 150, 0, &first_owner, 3 * MS);
	count.uncounted = first_owner.generation + 1;
	count_read(0, UNAVAILABLE_BIT, 0, &first_owner, 4 * MS);
	check_count(TOTAL, MEMWATCH_STATUS_UNAVAILABLE, 0, "an RMID that ran without counters");
	mw_rdt_count_restart(&count);
	count_read(0, 200, 0, &first_owner, 5 * MS);
	check_count(TOTAL, MEMWATCH_STATUS_ESTIMATED, 250,
		    "an RMID that got counters again counts from 0, and what it lacks is said");
	count_read(0, 210, 0, &first_owner, 6 * MS);
	check_count(TOTAL, MEMWATCH_STATUS_OK, 260, "an RMID that keeps its counters");

	count.uncounted = first_owner.generation + 1;
	note_while_read = true;
	count_read(0, 220, 0, &first_owner, 7 * MS);
	note_while_read = false;
	count_read(0, 230, 0, &first_owner, 8 * MS);
	check_count(TOTAL, MEMWATCH_STATUS_ESTIMATED, 280,
		    "what was noted during a reading is said with the next one");

	count.uncounted = first_owner.generation + 1;
	mw_rdt_count_restart(&count);
	mw_rdt_count_ran(&count, 12 * MS);
	count_read(0, 7, 0, &second, 14 * MS);
	check_count(TOTAL, MEMWATCH_STATUS_OK, 7,
		    "what the owner before did without counters is not said of the next one");
}

/* All CPUs of the domain were offline, and the registers have lost what they held. */
static void test_second_baseline(void)
{
	const u64 reg[MEMWATCH_RDT_MAX] = { 0, 3, 3 };
	struct mw_rdt_owner second = { .generation = 2 };

	format = intel_format(0);
	count_begin(100, 1);
	count_read(0, 150, 150, &first_owner, 3 * MS);
	mw_rdt_count_begin(&count, &format, reg, &first_owner, 4 * MS);
	count_read(8, 10, 3, &first_owner, 5 * MS);
	check_count(TOTAL, MEMWATCH_STATUS_OK, 57, "a counter that was reset is no wrap");
	mw_rdt_count_begin(&count, &format, reg, &first_owner, 6 * MS);
	count_read(0, 10, 3, &first_owner, 7 * MS);
	check_count(TOTAL, MEMWATCH_STATUS_ESTIMATED, 64,
		    "lines that were in the cache may have been written back, uncounted");
	count_read(0, 20, 3, &first_owner, 8 * MS);
	check_count(TOTAL, MEMWATCH_STATUS_OK, 74, "that is said once");
	count_read(8, 20, 3, &first_owner, 9 * MS);
	mw_rdt_count_begin(&count, &format, reg, &(struct mw_rdt_owner){ .generation = 2 },
			   10 * MS);
	second = (struct mw_rdt_owner){ .generation = 2, .free_ns = 9 * MS, .settle_ns = 2 * MS };
	count_read(0, 10, 3, &second, 11 * MS);
	check_count(TOTAL, MEMWATCH_STATUS_OK, 7,
		    "lines of the owner before do not concern the next one");
}

/* The RMID gets a new owner: to which of the two does the difference belong? */
static void test_generations(void)
{
	struct mw_rdt_owner second = { .generation = 2, .free_ns = 10 * MS, .settle_ns = 2 * MS };

	format = intel_format(0);
	count_begin(100, 1);
	mw_rdt_count_ran(&count, 9 * MS);
	count_read(0, 150, 0, &first_owner, 11 * MS);
	tap_eq(count_record().generation, 1, "a reading before the next owner is of generation 1");
	check_count(TOTAL, MEMWATCH_STATUS_OK, 50, "the last reading belongs to the old owner");
	mw_rdt_count_ran(&count, 13 * MS);
	count_read(0, 157, 0, &second, 14 * MS);
	tap_eq(count_record().generation, 2, "a reading after the change is of generation 2");
	check_count(TOTAL, MEMWATCH_STATUS_OK, 7, "the next owner starts at 0");

	count_begin(100, 1);
	mw_rdt_count_ran(&count, 9 * MS);
	count_read(0, 150, 0, &second, 14 * MS);
	tap_eq(count_record().generation, 2, "a reading that spans the change is of generation 2");
	check_count(TOTAL, MEMWATCH_STATUS_ESTIMATED, 0,
		    "a difference of which both owners have a part belongs to neither");

	count_begin(100, 1);
	check_count(TOTAL, MEMWATCH_STATUS_OK, 0, "a baseline is a reading of 0");
	mw_rdt_count_ran(&count, 9 * MS);
	count_read(0, ERROR_BIT, 0, &second, 14 * MS);
	count_read(0, 150, 0, &second, 15 * MS);
	check_count(TOTAL, MEMWATCH_STATUS_ESTIMATED, 0,
		    "a difference with an error at the change belongs to neither owner");
}

/* It depends on who is known to have run whether the new owner has all of the difference. */
static void test_generations_without_old_run(void)
{
	struct mw_rdt_owner second = { .generation = 2, .free_ns = 10 * MS, .settle_ns = 2 * MS };

	count_begin(100, 1);
	mw_rdt_count_ran(&count, 12 * MS);
	count_read(0, 150, 0, &second, 14 * MS);
	check_count(TOTAL, MEMWATCH_STATUS_OK, 50,
		    "if only the new owner ran, the difference belongs to it");
	count_begin(100, 1);
	count_read(0, 150, 0, &second, 11 * MS);
	tap_eq(count_record().status[TOTAL], MEMWATCH_STATUS_ESTIMATED,
	       "if no run is known before runs have settled, the difference is estimated");
	count_begin(100, 1);
	count_read(0, 150, 0, &second, 12 * MS);
	tap_eq(count_record().status[TOTAL], MEMWATCH_STATUS_OK,
	       "if no run is known after runs have settled, the difference is exact");
	count_begin(100, 1);
	mw_rdt_count_ran(&count, 9 * MS);
	count_read(0, 100, 0, &second, 11 * MS);
	tap_eq(count_record().generation, 2, "an unchanged counter gets the new generation");
	check_count(TOTAL, MEMWATCH_STATUS_OK, 0, "an unchanged counter is exact for both owners");
}

static struct prng prng = { .state = 1 };

/* A wide counter seen through a narrow register, with readings that fail. */
static void test_random_counts(void)
{
	u32 wrong = 0, wraps = 0, errors = 0, round, i;

	for (round = 0; round < 2000; round++) {
		u64 mask, start, truth = 0, expected;
		bool missed = false;

		format = intel_format(prng_below(&prng, 16));
		mask = (1ULL << format.width) - 1;
		start = prng_next(&prng) & mask;
		count_begin(start, 1);
		for (i = 0; i < 100; i++) {
			truth += prng_below(&prng, mask / 2) >> prng_below(&prng, format.width);
			missed = !missed && !prng_below(&prng, 8);
			count_read(0, missed ? ERROR_BIT : (start + truth) & mask, 0, &first_owner,
				   (i + 2) * MS);
			expected = missed ? 0 : truth * INTEL_SCALE;
			wrong += count_record().value[TOTAL] != expected;
			errors += missed;
		}
		wraps += (start + truth) > mask;
	}
	tap_eq(wrong, 0, "random counters of 24 to 39 bits have the value of a wide counter");
	tap_ok(wraps > 1000, "more than half of the random counters wrapped: %u", wraps);
	tap_ok(errors > 10000, "many readings of the random counters failed: %u", errors);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		prng.state = strtoull(argv[1], NULL, 0);
	tap_start();
	tap_note("seed %llu", (unsigned long long)prng.state);
	test_format();
	test_decode();
	test_correction();
	test_counts();
	test_amd();
	test_assigned();
	test_second_baseline();
	test_generations();
	test_generations_without_old_run();
	test_random_counts();
	return tap_done();
}
