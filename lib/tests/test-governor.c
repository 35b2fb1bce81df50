// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The cost governor of the growth monitor: its decisions on single measurements, and
 * the average cost under growth that does not end. Also the CPU time that it measures.
 */
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "growth/governor.h"
#include "growth/own-time.h"

#include "../../selftests/tap.h"

#define SECOND 1000000000ULL

static void init_governor(struct mw_governor *gov)
{
	mw_governor_init(gov, 5 * SECOND, 1000, 10000, 128);
}

static void report_events(struct mw_governor *gov, int times, uint32_t ppm, uint64_t seconds)
{
	for (int i = 0; i < times; i++)
		mw_governor_events(gov, ppm, seconds * SECOND);
}

static void test_rounds(void)
{
	struct mw_governor gov;

	init_governor(&gov);
	mw_governor_round(&gov, 1000000);
	tap_eq(gov.period_ns, 5 * SECOND, "rounds of 1 ms run at the wanted period of 5 s");
	tap_eq(gov.gap_ns, SECOND / 10, "requested rounds of 1 ms are at least 0.1 s apart");
	init_governor(&gov);
	mw_governor_round(&gov, 20000000);
	tap_eq(gov.period_ns, 20 * SECOND, "rounds of 20 ms run every 20 s");
	tap_eq(gov.gap_ns, 2 * SECOND, "requested rounds of 20 ms are at least 2 s apart");
	tap_eq(gov.fast_ns / 1000000, 7996,
	       "rounds of 20 ms that replace the event program take a quarter of its budget");
	init_governor(&gov);
	mw_governor_round(&gov, 100000);
	tap_eq(gov.fast_ns, SECOND / 4, "rounds that replace the event program are 250 ms apart");
}

/* Of the smallest budgets, the event program may use all. */
static void test_small_budget(void)
{
	struct mw_governor gov;

	for (uint32_t ppm = 1; ppm <= 4; ppm++) {
		mw_governor_init(&gov, 5 * SECOND, 1000, ppm, 128);
		report_events(&gov, 1, 20000, 1);
		mw_governor_round(&gov, 1000000);
		tap_eq(gov.gap_ns, gov.period_ns,
		       "with a budget of %u ppm, requested rounds are as far apart as others", ppm);
	}
}

static void test_visits(void)
{
	tap_eq(mw_governor_visits(1000, 5 * SECOND, 1000), 9 * SECOND / 2,
	       "cheap visits of cgroups come with each round");
	tap_eq(mw_governor_visits(8000000, 5 * SECOND, 1000) / SECOND, 19,
	       "visits of 8 ms take two fifths of the budget of rounds");
	tap_eq(mw_governor_visits(SECOND, 5 * SECOND, 1000), 60 * SECOND,
	       "visits of a second still come once a minute");
}

static void test_detach(void)
{
	struct mw_governor gov;

	init_governor(&gov);
	mw_governor_round(&gov, 20000000);
	report_events(&gov, 2, 20000, 1);
	tap_ok(gov.attached, "after two overruns the event program is still attached");
	tap_eq(gov.width, 512, "each of two overruns doubles the width");
	report_events(&gov, 1, 20000, 1);
	tap_ok(!gov.attached, "after three overruns the event program is detached");
	tap_eq(gov.detaches, 1, "the detach is counted");
	report_events(&gov, 6, 0, 10);
	tap_ok(gov.attached, "after a minute the event program is attached again");
	report_events(&gov, 3, 20000, 1);
	report_events(&gov, 11, 0, 10);
	tap_ok(!gov.attached, "the second time it stays detached for longer than 110 s");
	report_events(&gov, 1, 0, 10);
	report_events(&gov, 12, 100, 10);
	tap_ok(gov.attached, "the second time it is attached again after two minutes");
	tap_eq(gov.width, 128, "without overruns the width returns to its initial value");
}

/*
 * An hour in which the event program takes @ppm whenever it is attached. Returns the
 * average cost; @worst gets the highest average at the end of a detach.
 */
static double run_storm(uint32_t ppm, double *worst)
{
	struct mw_governor gov;
	double taken = 0, time = 0;

	*worst = 0;
	init_governor(&gov);
	while (time < 3600) {
		bool on = gov.attached;
		double step = on && gov.overruns ? 1 : 10;

		mw_governor_events(&gov, on ? ppm : 0, (uint64_t)step * SECOND);
		time += step;
		if (on)
			taken += step * ppm;
		if (!on && gov.attached && taken / time > *worst)
			*worst = taken / time;
	}
	return taken / time;
}

static void test_storm(void)
{
	static const uint32_t ppms[] = { 9000, 15000, 50000, 100000, 400000 };
	double mean = 0, worst = 0, most = 0;

	for (unsigned int i = 0; i < sizeof(ppms) / sizeof(ppms[0]); i++) {
		mean = run_storm(ppms[i], &worst);
		if (mean > most)
			most = mean;
		if (worst > most)
			most = worst;
	}
	tap_ok(most <= 10000, "event costs of 0.9 to 40 %% stay below 1 %% on average: %.2f %%",
	       most / 1e4);
}

/* Uses the CPU for 50 ms. */
static void use_cpu(void)
{
	struct timespec now, begin;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < 50000000);
}

static void *make_call(void *arg)
{
	mw_own_time_begin(arg);
	mw_own_time_end(arg);
	return NULL;
}

static void *update_time(void *arg)
{
	mw_own_time_update(arg);
	return NULL;
}

static void run_thread(void *(*fn)(void *), struct mw_own_time *time)
{
	pthread_t thread;

	pthread_create(&thread, NULL, fn, time);
	pthread_join(thread, NULL);
}

static void test_own_time(void)
{
	struct mw_own_time time;

	use_cpu();
	mw_own_time_init(&time, true);
	run_thread(make_call, &time);
	tap_ok(time.total_ns < 50000000,
	       "a call of a thread that is new counts what that took: "
	       "%llu ns",
	       (unsigned long long)time.total_ns);
	mw_own_time_init(&time, true);
	use_cpu();
	run_thread(update_time, &time);
	tap_eq(time.total_ns, 0, "what another thread has taken is not counted");
	make_call(&time);
	tap_ok(time.total_ns >= 50000000, "what a thread takes between two calls is counted");
	mw_own_time_add(&time, SECOND);
	tap_ok(time.total_ns < SECOND, "it is not counted twice if the caller reports it");
	mw_own_time_init(&time, false);
	use_cpu();
	make_call(&time);
	tap_ok(time.total_ns < 50000000, "other work of a shared thread is not counted");
	mw_own_time_add(&time, SECOND);
	tap_ok(time.total_ns >= SECOND, "what the caller reports is counted");
}

int main(void)
{
	tap_start();
	test_rounds();
	test_small_budget();
	test_visits();
	test_detach();
	test_storm();
	test_own_time();
	return tap_done();
}
