// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The arithmetic of the relay, on the host and under its sanitizers. The
 * oracle is the same formula in 128 bits.
 */
#include <stdint.h>
#include <string.h>

#include "../../bpf/relay.h"
#include "../tap.h"

static uint64_t seed = 88172645463325252ULL;

static uint64_t any(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Of any magnitude, not only large. */
static uint64_t any_size(void)
{
	uint64_t value = any();

	return value >> (any() % 64);
}

static void test_layout(void)
{
	tap_ok(sizeof(struct mw_relay_reading) == 24, "a reading is a struct bpf_perf_event_value");
}

static void test_multiply(void)
{
	unsigned int bad = 0, wide = 0;

	for (int i = 0; i < 2000000; i++) {
		uint64_t a = any_size(), b = any_size();
		unsigned __int128 want = (unsigned __int128)a * b;
		__u64 product = 0;
		int fits = mw_relay_multiply(a, b, &product);

		if (want >> 64)
			wide++;
		if (fits != !(want >> 64) || (fits && product != (uint64_t)want))
			bad++;
	}
	tap_ok(!bad && wide > 1000, "multiply agrees with 128 bits (%u wrong, %u too wide)", bad,
	       wide);
}

static void test_share(void)
{
	unsigned int bad = 0, wide = 0;

	for (int i = 0; i < 2000000; i++) {
		uint64_t c = any_size(), b = any_size(), a;
		unsigned __int128 product;

		if (!c)
			continue;
		a = any() % c;
		product = (unsigned __int128)a * b;
		wide += !!(product >> 64);
		if (mw_relay_share(a, b, c) != (uint64_t)(product / c))
			bad++;
	}
	tap_ok(!bad && wide > 100000, "share agrees with 128 bits (%u wrong, %u too wide)", bad,
	       wide);
}

static void test_scale(void)
{
	unsigned int bad = 0, multiplexed = 0, overflowed = 0;
	struct mw_relay_reading raw;
	__u64 value;
	__u32 ppm;
	__u8 status;

	for (int i = 0; i < 2000000; i++) {
		unsigned __int128 want;

		raw.counter = any_size();
		raw.enabled = any_size();
		raw.running = raw.enabled ? any_size() % raw.enabled : 0;
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
	tap_ok(!bad && multiplexed > 1000 && overflowed > 1000,
	       "scaling agrees with 128 bits (%u wrong, %u scaled, %u too wide)", bad, multiplexed,
	       overflowed);

	raw = (struct mw_relay_reading){ 12345, 1000000, 1000000 };
	ppm = 1000000;
	status = mw_relay_scale(&raw, 1000000, &value, &ppm);
	tap_ok(status == MEMWATCH_STATUS_OK && value == 12345 && ppm == 1000000,
	       "a counter that was on all the time is ok and unscaled");

	raw = (struct mw_relay_reading){ 300, 1000000, 250000 };
	status = mw_relay_scale(&raw, 1000000, &value, &ppm);
	tap_ok(status == MEMWATCH_STATUS_MULTIPLEXED && value == 1200 && ppm == 250000,
	       "a counter that was on a quarter of the time is multiplexed, times four");

	raw = (struct mw_relay_reading){ 0, 1000000, 0 };
	ppm = 1000000;
	status = mw_relay_scale(&raw, 1000000, &value, &ppm);
	tap_ok(status == MEMWATCH_STATUS_UNAVAILABLE && !value && !ppm,
	       "a counter that never got on the hardware is unavailable, not 0");

	raw = (struct mw_relay_reading){ 0, 0, 0 };
	ppm = 1000000;
	status = mw_relay_scale(&raw, 1000000, &value, &ppm);
	tap_ok(status == MEMWATCH_STATUS_UNAVAILABLE && !ppm,
	       "an event whose clock stands still is unavailable");
	ppm = 1000000;
	status = mw_relay_scale(&raw, 30, &value, &ppm);
	tap_ok(status == MEMWATCH_STATUS_OK && ppm == 1000000,
	       "but a stretch too short for its clock is ok");
}

static void test_delta(void)
{
	struct mw_relay_reading last = { 100, 50, 40 }, now = { 160, 90, 60 }, delta;

	tap_ok(mw_relay_delta(&last, &now, &delta) == MEMWATCH_STATUS_OK && delta.counter == 60 &&
		       delta.enabled == 40 && delta.running == 20,
	       "delta of two readings");
	for (int i = 0; i < 3; i++) {
		now = last;
		if (i == 0)
			now.counter--;
		else if (i == 1)
			now.enabled--;
		else
			now.running--;
		memset(&delta, 0xff, sizeof(delta));
		tap_ok(mw_relay_delta(&last, &now, &delta) == MEMWATCH_STATUS_ERROR &&
			       !delta.counter && !delta.enabled && !delta.running,
		       "backwards is an error and adds nothing (%d)", i);
	}
	last = (struct mw_relay_reading){ ~0ULL - 5, 0, 0 };
	now = (struct mw_relay_reading){ ~0ULL, 0, 0 };
	tap_ok(mw_relay_delta(&last, &now, &delta) == MEMWATCH_STATUS_OK && delta.counter == 5,
	       "delta at the end of the range");
}

static void test_sum(void)
{
	struct mw_relay_piece piece = { 0 };
	struct memwatch_record_sample rec;
	struct mw_relay_sum sum;

	memset(&sum, 0xff, sizeof(sum));
	mw_relay_sum_start(&sum, (7ULL << 32) | 3);
	for (int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		piece.status[i] = MEMWATCH_STATUS_OK;
	/* Cycles: half the time off the hardware, in two uneven pieces. */
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
	mw_relay_sample(&rec, &sum, 5, 100, 2100);

	tap_ok(rec.h.type == MEMWATCH_RECORD_SAMPLE && rec.h.size == sizeof(rec) &&
		       rec.h.cpu == 5 && !rec.h.flags && rec.h.time_ns == 2100 &&
		       rec.begin_ns == 100,
	       "header of a sample");
	tap_ok(rec.rmid == 3 && rec.generation == 7 && rec.run_ns == 1001,
	       "owner and time of a sample");
	tap_ok(rec.counter[0] == 2000 && rec.status[0] == MEMWATCH_STATUS_MULTIPLEXED &&
		       rec.running_ppm == 500000,
	       "a piece off the hardware is made up for (%llu, %u ppm)", rec.counter[0],
	       rec.running_ppm);
	tap_ok(rec.counter[1] == 4000 && rec.status[1] == MEMWATCH_STATUS_OK,
	       "pieces add up (%llu)", rec.counter[1]);
	tap_ok(rec.counter[2] == 5 && rec.status[2] == MEMWATCH_STATUS_ERROR,
	       "one bad piece spoils the sum");
	tap_ok(rec.counter[3] == 0 && rec.status[3] == MEMWATCH_STATUS_UNAVAILABLE,
	       "what is not measured is unavailable");

	mw_relay_sum_start(&sum, 4);
	piece.status[2] = MEMWATCH_STATUS_OK;
	piece.status[0] = MEMWATCH_STATUS_FIRST;
	mw_relay_sum_add(&sum, 1, &piece);
	mw_relay_sample(&rec, &sum, 0, 0, 1);
	tap_ok(rec.run_ns == 1 && rec.status[0] == MEMWATCH_STATUS_FIRST && !rec.counter[0],
	       "a sum that starts again forgets the last one");
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
	tap_ok(!bad, "status of sums (%u wrong)", bad);
}

int main(void)
{
	tap_start();
	test_layout();
	test_multiply();
	test_share();
	test_scale();
	test_delta();
	test_status();
	test_sum();
	return tap_done();
}
