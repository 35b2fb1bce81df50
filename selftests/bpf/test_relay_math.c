// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The arithmetic of the relay on the host, under sanitizers. Results are compared with those
 * of the same formulas in 128 bits.
 */
#include <stdint.h>
#include <string.h>

#include "../../bpf/relay.h"
#include "../prng.h"
#include "../tap.h"

static struct prng prng = { 1 };

/* A number of random magnitude. */
static uint64_t random_magnitude(void)
{
	uint64_t value = prng_next(&prng);

	return value >> prng_below(&prng, 64);
}

static void test_layout(void)
{
	tap_eq(sizeof(struct mw_relay_reading), 24,
	       "a reading has the size of struct bpf_perf_event_value");
}

static void test_multiply(void)
{
	unsigned int bad = 0, wide = 0;

	for (int i = 0; i < 2000000; i++) {
		uint64_t a = random_magnitude(), b = random_magnitude();
		unsigned __int128 want = (unsigned __int128)a * b;
		__u64 product = 0;
		int fits = mw_relay_multiply(a, b, &product);

		if (want >> 64)
			wide++;
		if (fits != !(want >> 64) || (fits && product != (uint64_t)want))
			bad++;
	}
	tap_eq(bad, 0, "mw_relay_multiply() agrees with 128-bit arithmetic");
	tap_ok(wide > 1000, "mw_relay_multiply() was tested with %u products above 64 bits", wide);
}

static void test_share(void)
{
	unsigned int bad = 0, wide = 0;

	for (int i = 0; i < 2000000; i++) {
		uint64_t c = random_magnitude(), b = random_magnitude(), a;
		unsigned __int128 product;

		if (!c)
			continue;
		a = prng_below(&prng, c);
		product = (unsigned __int128)a * b;
		wide += !!(product >> 64);
		if (mw_relay_share(a, b, c) != (uint64_t)(product / c))
			bad++;
	}
	tap_eq(bad, 0, "mw_relay_share() agrees with 128-bit arithmetic");
	tap_ok(wide > 100000, "mw_relay_share() was tested with %u products above 64 bits", wide);
}

static void test_random_scale(void)
{
	unsigned int bad = 0, multiplexed = 0, overflowed = 0;
	struct mw_relay_reading raw;
	__u64 value;
	__u32 ppm;
	__u8 status;

	for (int i = 0; i < 2000000; i++) {
		unsigned __int128 want;

		raw.counter = random_magnitude();
		raw.enabled = random_magnitude();
		raw.running = raw.enabled ? random_magnitude() % raw.enabled : 0;
		if (!raw.running)
			continue;
		ppm = 1000000;
		status = mw_relay_scale(&raw, 1, &value, &ppm);
		want = (unsigned __int128)raw.counter * raw.enabled / raw.running;
		if (want >> 64) {
			overflowed++;
			bad += status != MEMWATCH_STATUS_ERROR || value;
		} else {
			multiplexed++;
			bad += status != MEMWATCH_STATUS_MULTIPLEXED || value != (uint64_t)want ||
			       ppm != (uint32_t)((unsigned __int128)raw.running * 1000000 /
						 raw.enabled);
		}
	}
	tap_eq(bad, 0, "mw_relay_scale() agrees with 128-bit arithmetic");
	tap_ok(multiplexed > 1000, "mw_relay_scale() was tested with %u values that fit",
	       multiplexed);
	tap_ok(overflowed > 1000, "mw_relay_scale() was tested with %u values above 64 bits",
	       overflowed);
}

static const struct {
	const char *what;
	struct mw_relay_reading raw;
	__u64 run_ns;
	__u8 status;
	__u64 value;
	__u32 ppm;
} scale_cases[] = {
	{ "a counter that was running all the time is not scaled",
	  { 12345, 1000000, 1000000 },
	  1000000,
	  MEMWATCH_STATUS_OK,
	  12345,
	  1000000 },
	{ "a counter that was running for a quarter of the time is scaled by 4",
	  { 300, 1000000, 250000 },
	  1000000,
	  MEMWATCH_STATUS_MULTIPLEXED,
	  1200,
	  250000 },
	{ "a counter that was never running is unavailable",
	  { 0, 1000000, 0 },
	  1000000,
	  MEMWATCH_STATUS_UNAVAILABLE,
	  0,
	  0 },
	{ "an event whose enabled time did not advance is unavailable",
	  { 0, 0, 0 },
	  1000000,
	  MEMWATCH_STATUS_UNAVAILABLE,
	  0,
	  0 },
	{ "an interval that is shorter than the clocks can differ is OK",
	  { 0, 0, 0 },
	  30,
	  MEMWATCH_STATUS_OK,
	  0,
	  1000000 },
};

static void test_scale(void)
{
	for (size_t i = 0; i < sizeof(scale_cases) / sizeof(*scale_cases); i++) {
		__u64 value = 0;
		__u32 ppm = 1000000;

		tap_eq(mw_relay_scale(&scale_cases[i].raw, scale_cases[i].run_ns, &value, &ppm),
		       scale_cases[i].status, "%s: status", scale_cases[i].what);
		tap_eq(value, scale_cases[i].value, "%s: value", scale_cases[i].what);
		tap_eq(ppm, scale_cases[i].ppm, "%s: running_ppm", scale_cases[i].what);
	}
}

static void test_delta(void)
{
	struct mw_relay_reading last = { 100, 50, 40 }, now = { 160, 90, 60 }, delta;

	tap_eq(mw_relay_delta(&last, &now, &delta), MEMWATCH_STATUS_OK,
	       "the delta of two readings is OK");
	tap_eq(delta.counter, 60, "the delta of two readings: counter");
	tap_eq(delta.enabled, 40, "the delta of two readings: enabled");
	tap_eq(delta.running, 20, "the delta of two readings: running");
	for (int i = 0; i < 3; i++) {
		static const char *const members[] = { "counter", "enabled", "running" };

		now = last;
		if (i == 0)
			now.counter--;
		else if (i == 1)
			now.enabled--;
		else
			now.running--;
		memset(&delta, 0xff, sizeof(delta));
		tap_eq(mw_relay_delta(&last, &now, &delta), MEMWATCH_STATUS_ERROR,
		       "a reading whose %s went backwards is an error", members[i]);
		tap_ok(!delta.counter && !delta.enabled && !delta.running,
		       "a reading whose %s went backwards adds nothing", members[i]);
	}
	last = (struct mw_relay_reading){ ~0ULL - 5, 0, 0 };
	now = (struct mw_relay_reading){ ~0ULL, 0, 0 };
	tap_eq(mw_relay_delta(&last, &now, &delta), MEMWATCH_STATUS_OK,
	       "the delta at the end of 64 bits is OK");
	tap_eq(delta.counter, 5, "the delta at the end of 64 bits is exact");
}

/* A slot in which counter 1 is read without its times at each switch, and with them at the tick. */
static void test_check_times(void)
{
	struct mw_relay_reading last = { 100, 5000, 5000 }, delta;
	struct mw_relay_cpu cpu = { 0 };
	struct memwatch_record_sample rec;
	struct mw_relay_sum sum;

	tap_eq(mw_relay_count(&last, 160, 300000, &delta), MEMWATCH_STATUS_OK,
	       "a count without times is OK");
	tap_ok(delta.counter == 60 && delta.enabled == 300000 && delta.running == 300000,
	       "a count without times is taken to have been on the hardware all the time");
	tap_ok(last.counter == 160 && last.enabled == 5000, "the next count begins there");
	tap_eq(mw_relay_count(&last, 159, 1, &delta), MEMWATCH_STATUS_ERROR,
	       "a count that went backwards is an error");

	mw_relay_sum_start(&sum, 1, 0);
	sum.run_ns = 300000;
	for (int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		sum.piece.delta[i] = (struct mw_relay_reading){ 60, 300000, 300000 };
	memset(sum.piece.status, MEMWATCH_STATUS_OK, sizeof(sum.piece.status));
	delta = (struct mw_relay_reading){ 200, 1000000, 1000000 };
	mw_relay_check_times(&cpu, 1, 1000000, &delta);
	tap_eq(cpu.uneven, 0, "a counter that was on the hardware all the time needs no scaling");
	delta.running = 250000;
	mw_relay_check_times(&cpu, 1, 1000000, &delta);
	tap_eq(cpu.uneven, 2, "a counter that shared the hardware is noticed at the tick");
	mw_relay_apply_times(&cpu, &sum);
	mw_relay_sample(&rec, &sum, 0, 1000000);
	tap_eq(MEMWATCH_SAMPLE_STATUS(&rec, 1), MEMWATCH_STATUS_MULTIPLEXED,
	       "a count without times is multiplexed if the counter was");
	tap_eq(MEMWATCH_SAMPLE_COUNTER(&rec, 1), 240,
	       "such a count is scaled by the times of the slot");
	tap_eq(rec.running_ppm, 250000, "running_ppm is that of the slot");
	cpu.uneven = 0;
	delta = (struct mw_relay_reading){ 0 };
	mw_relay_check_times(&cpu, 1, 1000000, &delta);
	sum.piece.delta[1].counter = 0;
	mw_relay_apply_times(&cpu, &sum);
	mw_relay_sample(&rec, &sum, 0, 1000000);
	tap_eq(MEMWATCH_SAMPLE_STATUS(&rec, 1), MEMWATCH_STATUS_UNAVAILABLE,
	       "a counter that was never enabled is unavailable");
	mw_relay_sum_start(&sum, 1, 0);
	sum.piece.delta[1] = (struct mw_relay_reading){ 60, 300000, 300000 };
	memset(sum.piece.status, MEMWATCH_STATUS_OK, sizeof(sum.piece.status));
	cpu.begin_ns = 500000;
	mw_relay_apply_times(&cpu, &sum);
	mw_relay_sample(&rec, &sum, 0, 1000000);
	tap_eq(MEMWATCH_SAMPLE_STATUS(&rec, 1), MEMWATCH_STATUS_ESTIMATED,
	       "a sum of several slots is estimated if the counter shared the hardware in one");
	tap_eq(MEMWATCH_SAMPLE_COUNTER(&rec, 1), 60, "it is not scaled by the times of that slot");
}

static void test_sum(void)
{
	struct mw_relay_piece piece = { 0 };
	struct memwatch_record_sample rec;
	struct mw_relay_sum sum;

	memset(&sum, 0xff, sizeof(sum));
	mw_relay_sum_start(&sum, (7ULL << 32) | 3, 100);
	for (int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		piece.status[i] = MEMWATCH_STATUS_OK;
	/* the first counter is running in the first piece only, which is half of the time */
	piece.delta[0] = (struct mw_relay_reading){ 1000, 500, 500 };
	piece.delta[1] = (struct mw_relay_reading){ 2000, 500, 500 };
	piece.delta[2] = (struct mw_relay_reading){ 5, 500, 500 };
	piece.delta[3] = (struct mw_relay_reading){ 0, 0, 0 };
	piece.status[3] = MEMWATCH_STATUS_UNAVAILABLE;
	mw_relay_sum_add(&sum, 500, &piece);
	piece.delta[0] = (struct mw_relay_reading){ 0, 500, 0 };
	piece.delta[2] = (struct mw_relay_reading){ 0, 0, 0 };
	piece.status[2] = MEMWATCH_STATUS_ERROR;
	mw_relay_sum_add(&sum, 501, &piece);
	memset(&rec, 0xff, sizeof(rec));
	mw_relay_sample(&rec, &sum, 5, 2100);

	tap_eq(rec.h.type, MEMWATCH_RECORD_SAMPLE, "the type of a sample");
	tap_eq(rec.h.size, sizeof(rec), "the size of a sample");
	tap_eq(rec.h.cpu, 5, "the CPU of a sample");
	tap_eq(rec.h.flags, 0, "a sample has no flags");
	tap_eq(rec.h.time_ns, 2100, "the time of a sample is the end of its interval");
	tap_eq(rec.begin_ns, 100, "the begin of a sample is that of its interval");
	tap_eq(rec.rmid, 3, "the RMID of a sample");
	tap_eq(rec.generation, 7, "the generation of a sample");
	tap_eq(rec.run_ns, 1001, "the run_ns of a sample is the sum of its pieces");
	tap_eq(rec.counter[0], 2000,
	       "a piece in which the counter was not running is extrapolated");
	tap_eq(rec.status[0], MEMWATCH_STATUS_MULTIPLEXED,
	       "an extrapolated counter is multiplexed");
	tap_eq(rec.running_ppm, 500000, "running_ppm is the smallest share of all counters");
	tap_eq(rec.counter[1], 4000, "the pieces of a counter are added up");
	tap_eq(rec.status[1], MEMWATCH_STATUS_OK, "a sum of good pieces is OK");
	tap_eq(rec.counter[2], 5, "a sum with an erroneous piece has the value of the others");
	tap_eq(rec.status[2], MEMWATCH_STATUS_ERROR, "a sum with an erroneous piece is an error");
	tap_eq(rec.counter[3], 0, "a counter that was not measured has the value 0");
	tap_eq(rec.status[3], MEMWATCH_STATUS_UNAVAILABLE,
	       "a counter that was not measured is unavailable");

	mw_relay_sum_start(&sum, 4, 0);
	piece.status[2] = MEMWATCH_STATUS_OK;
	piece.status[0] = MEMWATCH_STATUS_FIRST;
	mw_relay_sum_add(&sum, 1, &piece);
	mw_relay_sample(&rec, &sum, 0, 1);
	tap_eq(rec.run_ns, 1, "a new sum does not contain the time of the last one");
	tap_eq(rec.status[0], MEMWATCH_STATUS_FIRST, "a new sum has the status of its first piece");
	tap_eq(rec.counter[0], 0, "a new sum does not contain the counts of the last one");
}

static void test_status(void)
{
	static const struct {
		__u8 a, b, sum;
	} cases[] = {
		{ MW_RELAY_STATUS_NONE, MEMWATCH_STATUS_OK, MEMWATCH_STATUS_OK },
		{ MW_RELAY_STATUS_NONE, MEMWATCH_STATUS_UNAVAILABLE, MEMWATCH_STATUS_UNAVAILABLE },
		{ MW_RELAY_STATUS_NONE, MEMWATCH_STATUS_FIRST, MEMWATCH_STATUS_FIRST },
		{ MEMWATCH_STATUS_OK, MEMWATCH_STATUS_OK, MEMWATCH_STATUS_OK },
		{ MEMWATCH_STATUS_OK, MEMWATCH_STATUS_FIRST, MEMWATCH_STATUS_OK },
		{ MEMWATCH_STATUS_OK, MEMWATCH_STATUS_ERROR, MEMWATCH_STATUS_ERROR },
		{ MEMWATCH_STATUS_OK, MEMWATCH_STATUS_UNAVAILABLE, MEMWATCH_STATUS_ESTIMATED },
		{ MEMWATCH_STATUS_FIRST, MEMWATCH_STATUS_UNAVAILABLE, MEMWATCH_STATUS_UNAVAILABLE },
		{ MEMWATCH_STATUS_FIRST, MEMWATCH_STATUS_ERROR, MEMWATCH_STATUS_ERROR },
		{ MEMWATCH_STATUS_UNAVAILABLE, MEMWATCH_STATUS_ERROR, MEMWATCH_STATUS_ERROR },
		{ MEMWATCH_STATUS_ESTIMATED, MEMWATCH_STATUS_OK, MEMWATCH_STATUS_ESTIMATED },
		{ MEMWATCH_STATUS_ESTIMATED, MEMWATCH_STATUS_UNAVAILABLE,
		  MEMWATCH_STATUS_ESTIMATED },
		{ MEMWATCH_STATUS_ESTIMATED, MEMWATCH_STATUS_FIRST, MEMWATCH_STATUS_ESTIMATED },
		{ MEMWATCH_STATUS_ESTIMATED, MEMWATCH_STATUS_ERROR, MEMWATCH_STATUS_ERROR },
	};
	unsigned int bad = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (mw_relay_status_add(cases[i].a, cases[i].b) != cases[i].sum)
			bad++;
		if (cases[i].a != MW_RELAY_STATUS_NONE &&
		    mw_relay_status_add(cases[i].b, cases[i].a) != cases[i].sum)
			bad++;
	}
	tap_eq(bad, 0, "the status of each sum is as expected, in both orders of its parts");
}

int main(void)
{
	tap_start();
	test_layout();
	test_multiply();
	test_share();
	test_random_scale();
	test_scale();
	test_delta();
	test_check_times();
	test_status();
	test_sum();
	return tap_done();
}
