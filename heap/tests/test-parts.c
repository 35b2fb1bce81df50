// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The parts of the profiler that need no program: random intervals, the filter in front of
 * free(), and the map of live samples. They are linked into this test.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>

#include "heap/bootstrap.h"
#include "heap/filter.h"
#include "heap/index.h"
#include "heap/interval.h"
#include "heap/lock.h"
#include "selftests/prng.h"
#include "selftests/tap.h"

/* Where the profiler has its bootstrap heap; the filter keeps its cells. */
char mw_bootstrap_heap[MW_BOOTSTRAP_BYTES];

static void check_mathematics(void)
{
	double log_error = 0, exp_error = 0;
	struct mw_random random;

	mw_random_seed(&random, 1);
	for (int i = 0; i < 1000000; i++) {
		double u = mw_random_unit(&random), x = exp(60 * mw_random_unit(&random) - 50);

		if (u < 1)
			log_error = fmax(log_error, fabs(mw_log(u) / log(u) - 1));
		exp_error = fmax(exp_error, fabs(mw_one_minus_exp(x) / -expm1(-x) - 1));
	}
	tap_ok(log_error < 1e-15, "the logarithm is right to %.1e", log_error);
	tap_ok(exp_error < 1e-15, "the exponential is right to %.1e", exp_error);
	tap_ok(mw_one_minus_exp(0) == 0 && mw_one_minus_exp(1e300) == 1 && mw_log(1) == 0,
	       "their ends are exact");
}

/* The share of allocations of @size that contain a sample, against its probability. */
static void check_probability(uint64_t size, uint64_t rate)
{
	const int draws = 400000;
	struct mw_random random;
	double p = mw_interval_probability(size, rate), expected = p * draws;
	int sampled = 0;

	mw_random_seed(&random, size * 31 + rate);
	for (int i = 0; i < draws; i++)
		sampled += mw_interval_draw(&random, rate) < size;
	tap_ok(fabs(sampled - expected) <= 4 * sqrt(expected * (1 - p)) + 1,
	       "%lu bytes at %lu: %d of %d are sampled, expected %.0f", (unsigned long)size,
	       (unsigned long)rate, sampled, draws, expected);
}

static void check_seeds(void)
{
	struct mw_random a, b;
	int equal = 0;

	mw_random_seed(&a, 1);
	mw_random_seed(&b, 2);
	for (int i = 0; i < 1000; i++)
		equal += mw_random_next(&a) >> 32 == mw_random_next(&b) >> 32;
	tap_eq(equal, 0, "neighbouring seeds give different numbers");
}

static void *address_of(uint64_t n)
{
	return (void *)(uintptr_t)(0x7f0000000000 + n * 48);
}

static void check_filter(void)
{
	unsigned int missing = 0, passed = 0;

	for (uint64_t n = 0; n < 100000; n++)
		mw_filter_add(address_of(n));
	for (uint64_t n = 0; n < 100000; n++)
		missing += !mw_filter_may_have(address_of(n));
	tap_eq(missing, 0, "the filter passes every address in it");
	for (uint64_t n = 0; n < 100000; n++)
		mw_filter_remove(address_of(n));
	for (uint64_t n = 0; n < 100000; n++)
		passed += mw_filter_may_have(address_of(n));
	tap_eq(passed, 0, "addresses that were removed leave nothing behind");
	for (int n = 0; n < 300; n++)
		mw_filter_add(address_of(1));
	for (int n = 0; n < 300; n++)
		mw_filter_remove(address_of(1));
	tap_ok(mw_filter_may_have(address_of(1)), "a counter that overflowed stays");
	mw_filter_add(mw_bootstrap_heap + 160);
	mw_filter_clear();
	tap_ok(!mw_filter_may_have(address_of(1)), "clearing forgets everything");
	tap_ok(mw_filter_may_have(mw_bootstrap_heap + 160),
	       "clearing keeps the blocks of the bootstrap heap");
}

static void check_index(void)
{
	struct mw_index_place place;
	uint32_t slot = 0;
	uint64_t n = 0;

	tap_eq(mw_index_claim(4096, &place), -ENOSPC, "an index without tables has no room");
	tap_eq(mw_index_grow(), 0, "a table is added");
	for (n = 0; !mw_index_claim((uintptr_t)address_of(n), &place); n++)
		mw_index_release(&place, (uintptr_t)address_of(n), (uint32_t)n);
	tap_ok(n > 4096 * 3 / 4, "a table can be filled to three quarters (%lu of 4096)",
	       (unsigned long)n);
	for (uint64_t i = 0; i < n; i++)
		if (mw_index_take((uintptr_t)address_of(i), &slot) != MW_INDEX_FOUND || slot != i)
			break;
		else if (i + 1 == n)
			slot = UINT32_MAX;
	tap_eq(slot, UINT32_MAX, "every address is found, with its slot");
	tap_eq(mw_index_take((uintptr_t)address_of(0), &slot), MW_INDEX_ABSENT,
	       "an address that was taken is not found again");
}

/* An empty place has the key 0, and must not be taken for an object at that address. */
static void check_null(void)
{
	struct mw_index_place place;
	uint32_t slot;

	tap_eq(mw_index_take(0, &slot), MW_INDEX_ABSENT, "there is no sample at address 0");
	tap_ok(!mw_index_hold(0, &place), "it cannot be held either");
	tap_ok(!mw_index_claim(48, &place) && mw_index_release(&place, 48, 5),
	       "places stay empty when address 0 is looked for");
	tap_ok(mw_index_take(48, &slot) == MW_INDEX_FOUND && slot == 5,
	       "a sample behind an empty place is found");
}

static void check_doom(void)
{
	struct mw_index_place place, other;
	uint32_t slot;

	mw_index_claim(64, &place);
	tap_eq(mw_index_take(64, &slot), MW_INDEX_DEFERRED, "a free during a birth is deferred");
	tap_ok(!mw_index_release(&place, 64, 1), "the birth then fails");
	tap_eq(mw_index_take(64, &slot), MW_INDEX_ABSENT, "nothing is left of it");
	mw_index_claim(64, &place);
	mw_index_release(&place, 64, 7);
	tap_ok(mw_index_hold(64, &place) && *place.slot == 7, "a sample can be held");
	tap_ok(!mw_index_hold(64, &other), "it cannot be held twice");
	tap_eq(mw_index_take(64, &slot), MW_INDEX_DEFERRED, "a free of a held sample is deferred");
	tap_ok(!mw_index_release(&place, 64, 7), "its holder is told");
}

#define RACE_ADDRESSES 64
#define RACE_ROUNDS    300000

static uint64_t race_born, race_died;

/* Threads that claim, release, take and hold the same few addresses. */
static void *race_thread(void *argument)
{
	struct prng prng = { (uintptr_t)argument };
	uint64_t born = 0, died = 0;

	for (int i = 0; i < RACE_ROUNDS; i++) {
		uint64_t address = 16 * (1 + prng_below(&prng, RACE_ADDRESSES));
		struct mw_index_place place;
		uint32_t slot;

		if (prng_below(&prng, 3) == 0) {
			died += mw_index_take(address, &slot) == MW_INDEX_FOUND;
		} else if (mw_index_hold(address, &place)) {
			died += !mw_index_release(&place, address, *place.slot);
		} else if (!mw_index_claim(address, &place)) {
			born++;
			died += !mw_index_release(&place, address, 1);
		}
	}
	__atomic_fetch_add(&race_born, born, __ATOMIC_RELAXED);
	__atomic_fetch_add(&race_died, died, __ATOMIC_RELAXED);
	return NULL;
}

static void check_races(void)
{
	pthread_t threads[4];
	uint64_t left = 0;
	uint32_t slot;

	for (uintptr_t n = 0; n < 4; n++)
		pthread_create(&threads[n], NULL, race_thread, (void *)(n + 1));
	for (int n = 0; n < 4; n++)
		pthread_join(threads[n], NULL);
	for (uint64_t n = 1; n <= RACE_ADDRESSES; n++)
		while (mw_index_take(16 * n, &slot) == MW_INDEX_FOUND)
			left++;
	tap_eq(race_born - race_died, left, "%lu births and deaths in four threads add up",
	       (unsigned long)(race_born + race_died));
}

/* Returns how often the thread has waited. */
static unsigned int wait_for(struct mw_lock *lock)
{
	unsigned int waits = 0;

	while (mw_lock_wait(lock, &waits))
		;
	return waits;
}

static void check_lock(void)
{
	static struct mw_lock lock;
	unsigned int first;

	tap_ok(mw_lock_try(&lock) && !mw_lock_try(&lock), "a lock has one holder");
	first = wait_for(&lock);
	tap_ok(first > 100, "a thread waits for a holder, though not for ever (%u times)", first);
	tap_eq(wait_for(&lock), 0, "nobody else waits for a holder that hangs");
	mw_lock_end(&lock);
	tap_ok(mw_lock_try(&lock), "when it has gone on, another one takes the lock");
	tap_eq(wait_for(&lock), first, "and is waited for");
	mw_lock_end(&lock);
}

int main(void)
{
	tap_start();
	check_mathematics();
	check_probability(8, 512 << 10);
	check_probability(1000, 4096);
	check_probability(4096, 4096);
	check_probability(512 << 10, 512 << 10);
	check_probability(1 << 20, 512 << 10);
	check_probability(1, 1);
	check_seeds();
	check_filter();
	check_index();
	check_null();
	check_doom();
	check_races();
	check_lock();
	return tap_done();
}
