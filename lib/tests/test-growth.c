// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth detectors against what is known in closed form: a leak against the time in
 * which it must be noticed, its slope and its time to the limit; growth that is no leak
 * against the silence of alerts.
 */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <memwatch/growth.h>

#include "../../selftests/tap.h"
#include "growth-shapes.h"

#define BASE (100.0 * MIB)

static double leak_10k(double t)
{
	return BASE + 10240 * t;
}

static double leak_1m(double t)
{
	return BASE + (t > 600 ? (t - 600) * MIB : 0);
}

static double leak_10m(double t)
{
	return BASE + (t > 60 ? (t - 60) * 10 * MIB : 0);
}

static double leak_saw(double t)
{
	return BASE + 51200 * t + fmod(t, 30) * 2 * MIB;
}

static double leak_slow(double t)
{
	return 256.0 * MIB + t * 1456;
}

static double leak_100k(double t)
{
	return BASE + (t > 600 ? (t - 600) * 102400 : 0);
}

/* 1 MiB/s from 60 s on, for 200 s. */
static double leak_ends(double t)
{
	return BASE + fmin(200, fmax(0, t - 60)) * MIB;
}

/* A start-up of 14 s, then 10 s without growth, then a leak of 130 KiB/s; as redis did. */
static double leak_started(double t)
{
	return (fmin(t, 14) + 4) * MIB + (t > 24 ? (t - 24) * 133120 : 0);
}

/* 475 MiB at 5 MiB/s, and 500 MiB at 20 MiB/s on the next day. */
static double leaks_twice(double t)
{
	return BASE + (fmin(475, fmax(0, t - 600) * 5) + fmin(500, fmax(0, t - 86400) * 20)) * MIB;
}

static double leak_curve(double t)
{
	return BASE + t * t / 3600 * 64 * 1024;
}

static double leak_bursts_out(double t)
{
	return BASE + 2048 * t + (t > 7200 ? (t - 7200) * 5 * MIB : 0);
}

/* 1 MiB/s from 300 s on, which becomes spurt_rate after half an hour and ends with it. */
static double spurt_rate, spurt_ends;
static double leak_spurts(double t)
{
	double fast = fmin(spurt_ends, fmax(0, t - 2100));

	return BASE + (fmax(0, t - 300 - fast) + fast * spurt_rate) * MIB;
}

/* An episode that goes on for 50 days, in which the signal grows by less and less; then 5 MiB/s. */
#define LONG_EPISODE (51 * 86400.0)
static double leak_after_weeks(double t)
{
	return BASE + (4 * log2(1 + t / 10) + fmax(0, t - LONG_EPISODE) * 5) * MIB;
}

static double flat_signal(double t)
{
	return BASE + fmod(t, 300) * 68;
}

static double sawtooth_60m(double t)
{
	return BASE + fmod(t, 30) * 2 * MIB;
}

static double warm_up(double t)
{
	return BASE + 300 * MIB * (1 - exp(-t / 600));
}

static double start_up(double t)
{
	return fmin(600, t * 30) * MIB;
}

static double doubling_steps(double t)
{
	return BASE + exp2(floor(log2(1 + t / 60))) * MIB;
}

/* 16 KiB/s for 27 minutes, to 25 MiB, of which 17 MiB were in use shortly before. */
static double comes_back(double t)
{
	double bump = t > 4300 && t < 4700 ? 17 : 0;

	return BASE + (fmod(t, 10) / 5 + bump + fmin(25, fmax(0, t - 5000) / 64)) * MIB;
}

static double filling_cache(double t)
{
	return BASE + fmin(300, t / 3) * MIB;
}

static void test_slow_leak(void)
{
	struct result r = run_shape(leak_10k, 1800, 5, 0);

	tap_eq(r.alerts, 0, "a leak of 10 KiB/s far from any limit raises no alert in 30 minutes");
	tap_eq(r.row.verdict, MEMWATCH_GROWTH_GROWING,
	       "a leak of 10 KiB/s has the verdict growing");
	tap_ok(is_near((double)r.row.slope, 10240, 0.001), "a leak of 10 KiB/s has its slope: %llu",
	       (unsigned long long)r.row.slope);
	r = run_shape(leak_saw, 1800, 5, 0);
	tap_ok(r.notices >= 1, "a leak of 50 KiB/s below a sawtooth of 60 MiB is noticed");
	tap_eq(r.row.verdict, MEMWATCH_GROWTH_GROWING,
	       "a leak of 50 KiB/s below a sawtooth of 60 MiB has the verdict growing");
	tap_ok(is_near((double)r.row.slope, 51200, 0.02),
	       "a leak of 50 KiB/s below a sawtooth has its slope: %llu",
	       (unsigned long long)r.row.slope);
	r = run_shape(leak_slow, 172800, 20, 0);
	tap_eq(r.alerts, 1, "a leak of 5 MB/h is found within two days: at %.1f h",
	       seconds_of(r.row.first_alert_ns) / 3600);
	tap_eq(r.row.reason, MEMWATCH_GROWTH_REASON_HEIGHT,
	       "a leak of 5 MB/h is found by the rule height");
	tap_ok(is_near((double)r.row.alert_slope, 1456, 0.02),
	       "the alert about a leak of 5 MB/h has its slope: %llu",
	       (unsigned long long)r.row.alert_slope);
	tap_ok(is_near((double)r.row.growth_bytes, 86400 * 1456.0, 0.05),
	       "the growth of the alert is that of the last 24 hours: %llu bytes",
	       (unsigned long long)r.row.growth_bytes);
}

/* The times are those of the issue of live notices; the step is the cadence of samples. */
static void test_notice_in_time(void)
{
	static const struct {
		const char *rate;
		shape f;
		double onset, deadline, step;
	} cases[] = {
		{ "10 MiB/s", leak_10m, 60, 5, 1 },
		{ "1 MiB/s", leak_1m, 600, 20, 5 },
		{ "100 KiB/s", leak_100k, 600, 120, 5 },
		{ "10 KiB/s", leak_10k, 0, 1800, 5 },
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct result r = run_shape(cases[i].f, cases[i].onset + cases[i].deadline,
					    cases[i].step, 0);

		tap_eq(r.notices, 1, "a leak of %s is noticed within %.0f s: after %.0f s",
		       cases[i].rate, cases[i].deadline,
		       seconds_of(r.row.first_notice_ns) - cases[i].onset);
		tap_ok(r.row.first_notice_ns > cases[i].onset * 1e9,
		       "a leak of %s is noticed after its onset", cases[i].rate);
		tap_eq(r.row.verdict, MEMWATCH_GROWTH_GROWING, "a leak of %s is growing",
		       cases[i].rate);
	}
}

static void test_fast_leak(void)
{
	struct result r = run_shape(leak_1m, 855, 1, 356 * MIB);

	tap_eq(r.alerts, 1, "a leak of 1 MiB/s towards a limit is found");
	tap_ok(r.row.alert_eta_ns >= 120 * 1000000000ULL,
	       "a leak of 1 MiB/s is found two minutes before the limit: %.0f s",
	       seconds_of(r.row.alert_eta_ns));
	tap_ok(is_near(seconds_of(r.row.alert_eta_ns), 856 - seconds_of(r.row.first_alert_ns),
		       0.03),
	       "the alert about a leak of 1 MiB/s says how much time is left");
	r = run_shape(leak_10m, 85, 1, 356 * MIB);
	tap_eq(r.alerts, 1, "a leak of 10 MiB/s is found, at one sample per second");
	tap_ok(r.row.first_alert_ns <= 72800000000ULL,
	       "a leak of 10 MiB/s is found with half of its time left: at %.0f s of 60 to 85.6",
	       seconds_of(r.row.first_alert_ns));
	tap_ok(r.row.first_alert_ns > 60000000000ULL,
	       "a leak of 10 MiB/s is found after its onset");
	r = run_shape(leak_10m, 85, 5, 356 * MIB);
	tap_eq(r.alerts, 1, "a leak of 10 MiB/s is found, at a sample every 5 s: at %.0f s",
	       seconds_of(r.row.first_alert_ns));
}

static void test_leak_after_start(void)
{
	struct result r = run_shape(leak_started, 150, 1, 35 * MIB);

	tap_eq(r.alerts, 1,
	       "a leak that begins as the start-up ends is found: at %.0f s of 24 to 158",
	       seconds_of(r.row.first_alert_ns));
	tap_ok(r.row.since_ns >= 14000000000ULL,
	       "the start-up does not count as part of the leak: it began at %.0f s",
	       seconds_of(r.row.since_ns));
	tap_ok(r.row.since_ns <= 36000000000ULL,
	       "the beginning of the leak is found: %.0f s, true are 24 s",
	       seconds_of(r.row.since_ns));
	tap_ok(is_near((double)r.row.slope, 133120, 0.01),
	       "the start-up does not change the slope of the leak: %llu",
	       (unsigned long long)r.row.slope);
}

static void test_clear(void)
{
	struct result r = run_shape(leak_ends, 7200, 5, 360 * MIB);

	tap_eq(r.alerts, 1, "a leak of 1 MiB/s towards a limit is found before it ends");
	tap_eq(r.clears, 1, "the alert is cleared after the growth has ended");
	tap_eq(r.notices, 1, "there is one notice of growth that goes on");
	tap_eq(r.settles, 1, "the notice ends after the growth has ended");
	tap_eq(r.row.verdict, MEMWATCH_GROWTH_STABLE,
	       "after the alert is cleared the verdict is stable");
	tap_ok(r.row.first_alert_ns != MEMWATCH_GROWTH_NONE,
	       "the time of the first alert is kept after it is cleared");
	tap_ok(r.row.first_notice_ns < r.row.first_alert_ns, "the notice comes before the alert");
}

static void test_spurt(void)
{
	const uint64_t limit = 4096 * MIB;
	double begin = 2100, end, told, left;
	struct result r;

	spurt_ends = 1000;
	for (spurt_rate = 5; spurt_rate <= 40; spurt_rate *= 2) {
		end = begin + (double)(limit / MIB - 1900) / spurt_rate;
		r = run_shape(leak_spurts, end, 5, limit);
		told = seconds_of(r.row.first_alert_ns);
		left = end - told;
		tap_eq(r.alerts, 1, "a leak that becomes %.0f times as fast has one alert",
		       spurt_rate);
		tap_ok(told > begin && (left >= 120 || left >= (end - begin) / 2 - 5),
		       "the alert comes two minutes before the kill or in the first half: %.0f s "
		       "of %.0f are left",
		       left, end - begin);
		tap_ok(is_near(seconds_of(r.row.alert_eta_ns), left, 0.05),
		       "the alert says how much time is left: %.0f s",
		       seconds_of(r.row.alert_eta_ns));
		tap_ok(r.row.since_ns > (begin - 10) * 1e9,
		       "the growth is that since it became faster: %.0f s",
		       seconds_of(r.row.since_ns));
	}
	spurt_rate = 20;
	spurt_ends = 20;
	r = run_shape(leak_spurts, 3000, 5, limit);
	tap_eq(r.alerts, 0, "20 s of fast growth far from the limit are no alert");
	r = run_shape(leak_after_weeks, LONG_EPISODE + 190, 10,
		      (uint64_t)leak_after_weeks(LONG_EPISODE + 200));
	tap_eq(r.alerts, 1, "a fast leak is found in an episode of more than 49 days");
	left = LONG_EPISODE + 200 - seconds_of(r.row.first_alert_ns);
	tap_ok(left > 90, "it is found in the first half of its time: %.0f s are left", left);
}

/* What is said of the second alert is not what was true of the first one. */
static void test_second_alert(void)
{
	struct result r = run_shape(leaks_twice, 86400 + 900, 5, 1100 * MIB);

	tap_eq(r.alerts, 2, "two leaks of one process have an alert each");
	tap_eq(r.clears, 2, "an alert that comes a day after another is cleared in minutes too");
	tap_ok(seconds_of(r.row.first_alert_ns) < 1000, "the time of the first alert stays");
	tap_ok(is_near((double)r.row.alert_slope, 20.0 * MIB, 0.02),
	       "the slope is that of the second alert: %llu",
	       (unsigned long long)r.row.alert_slope);
	tap_ok(seconds_of(r.row.alert_eta_ns) < 30,
	       "the time to the limit is that of the second alert: %.0f s",
	       seconds_of(r.row.alert_eta_ns));
}

static void test_spans(void)
{
	MEMWATCH_OPTS(memwatch_growth_sample, sample, .tgid = 7, .comm = "x",
		      .limit_bytes = 360 * MIB);
	MEMWATCH_OPTS(memwatch_growth_span, span);
	struct memwatch_growth *growth;

	memwatch_growth_new(ctx, &growth);
	for (uint64_t t = 0; t <= 7200; t += 5) {
		sample.time_ns = t * 1000000000;
		sample.anon_bytes = (uint64_t)leak_ends((double)t);
		memwatch_growth_feed(growth, &sample);
	}
	tap_eq(memwatch_growth_get_span(growth, 0, 0, &span), 1, "a process has a first span");
	tap_eq(span.level, MEMWATCH_GROWTH_NOTICE, "the first span is a notice");
	tap_ok(span.start_ns >= 65000000000ULL && span.start_ns <= 80000000000ULL,
	       "the notice begins after the onset: at %.0f s", seconds_of(span.start_ns));
	tap_ok(span.end_ns >= 320000000000ULL && span.end_ns <= 400000000000ULL,
	       "the notice ends after the growth: at %.0f s", seconds_of(span.end_ns));
	tap_eq(memwatch_growth_get_span(growth, 0, 1, &span), 1, "a process has a second span");
	tap_eq(span.level, MEMWATCH_GROWTH_ALERT, "the second span is an alert");
	tap_eq(span.reason, MEMWATCH_GROWTH_REASON_LIMIT, "the alert has its reason");
	tap_ok(span.end_ns > 560000000000ULL && span.end_ns < 600000000000ULL,
	       "the alert ends five minutes after the growth: at %.0f s", seconds_of(span.end_ns));
	tap_eq(memwatch_growth_get_span(growth, 0, 2, &span), 0, "there is no third span");
	tap_eq(memwatch_growth_get_span(growth, 1, 0, &span), 0, "there is no second process");
	span.sz = 0;
	tap_eq(memwatch_growth_get_span(growth, 0, 0, &span), -EINVAL,
	       "a span without its size is refused");
	memwatch_growth_unref(growth);
}

static void test_time_to_limit(void)
{
	/*
	 * The sampled peaks of the sawtooth are 50 MiB high and have gained 240 MiB at 3891 s.
	 * The kernel is expected to kill when 0.75 MiB are left.
	 */
	struct result r = run_shape(leak_saw, 2400, 5, 340 * MIB + 3 * MIB / 4);

	tap_ok(is_near(seconds_of(r.row.eta_ns), 3891 - 2400, 0.01),
	       "the peaks of a sawtooth reach the limit first: in %.0f s, true are 1491 s",
	       seconds_of(r.row.eta_ns));
	tap_ok(seconds_of(r.row.eta_low_ns) < 1491,
	       "the interval of the sawtooth begins before the true time: %.0f s",
	       seconds_of(r.row.eta_low_ns));
	tap_ok(seconds_of(r.row.eta_high_ns) > 1491,
	       "the interval of the sawtooth ends after the true time: %.0f s",
	       seconds_of(r.row.eta_high_ns));
	tap_ok(seconds_of(r.row.eta_high_ns) < 1.3 * seconds_of(r.row.eta_low_ns),
	       "the interval of the sawtooth is less than 30 %% wide: %.0f s to %.0f s",
	       seconds_of(r.row.eta_low_ns), seconds_of(r.row.eta_high_ns));
	/* 500 MiB at 5 MiB/s, after two hours of slow growth that fill the windows. */
	r = run_shape(leak_bursts_out, 7230, 1, (uint64_t)leak_bursts_out(7300));
	tap_ok(is_near(seconds_of(r.row.eta_ns), 70, 0.02),
	       "new fast growth is extrapolated, not the older trend: %.0f s, true are 70 s",
	       seconds_of(r.row.eta_ns));
	tap_ok(r.row.since_ns >= 7195000000000ULL,
	       "the new fast growth begins after 7195 s: %.0f s", seconds_of(r.row.since_ns));
	/* 256 MiB are gained after 3840 s. */
	r = run_shape(leak_curve, 1920, 5, 356 * MIB + 3 * MIB / 4);
	tap_ok(seconds_of(r.row.eta_low_ns) < 1920,
	       "the interval of accelerating growth begins before the true time: %.0f s",
	       seconds_of(r.row.eta_low_ns));
	tap_ok(seconds_of(r.row.eta_high_ns) > 1920,
	       "the interval of accelerating growth ends after the true time: %.0f s",
	       seconds_of(r.row.eta_high_ns));
	tap_ok(is_near(seconds_of(r.row.eta_ns), 1920, 0.05),
	       "growth that accelerates is expected to go on: %.0f s, true are 1920 s",
	       seconds_of(r.row.eta_ns));
}

static void test_benign(void)
{
	static const struct {
		const char *name;
		shape f;
		double seconds, step;
		uint64_t limit;
	} cases[] = {
		{ "a flat signal", flat_signal, 7200, 5, 0 },
		{ "a sawtooth of 60 MiB in 30 s", sawtooth_60m, 14400, 5, 0 },
		{ "a warm-up of 10 minutes", warm_up, 14400, 5, 0 },
		{ "a warm-up below a limit", warm_up, 14400, 5, 512 * MIB },
		{ "a start-up to 600 MiB of 1 GiB", start_up, 3600, 1, 1024 * MIB },
		{ "a start-up to 90 % of its limit", start_up, 3600, 1, 667 * MIB },
		{ "tables that double", doubling_steps, 14400, 5, 0 },
		{ "a daily wave", daily_wave, 259200, 20, 0 },
		{ "growth that comes back to where it was", comes_back, 6600, 5, 0 },
		{ "a cache of 300 MiB that fills in 15 minutes", filling_cache, 7200, 5, 0 },
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct result r = run_shape(cases[i].f, cases[i].seconds, cases[i].step,
					    cases[i].limit);

		tap_eq(r.alerts, 0, "no alert for %s", cases[i].name);
		tap_ok(r.row.verdict != MEMWATCH_GROWTH_LEAK, "no verdict leak for %s",
		       cases[i].name);
	}
}

/* Feeds a process with address space @reserved and memory @held, a sample every 15 s. */
static struct result run_reserve(shape reserved, shape held, double seconds)
{
	MEMWATCH_OPTS(memwatch_growth_sample, sample, .tgid = 7, .comm = "x");
	struct memwatch_growth *growth;
	struct result r = { .row = { .sz = sizeof(r.row) } };

	if (memwatch_growth_new(ctx, &growth))
		exit(EXIT_FAILURE);
	for (double t = 0; t <= seconds; t += 15) {
		sample.time_ns = (uint64_t)(t * 1e9);
		sample.anon_bytes = (uint64_t)held(t);
		sample.vsz_bytes = (uint64_t)(reserved(t) + held(t));
		sample.limit_bytes = MEMWATCH_GROWTH_NONE;
		r.alerts += memwatch_growth_feed(growth, &sample) == MEMWATCH_GROWTH_ALERT;
	}
	memwatch_growth_get_row(growth, 0, &r.row);
	memwatch_growth_unref(growth);
	return r;
}

static double growing_addresses(double t)
{
	return BASE + t * MIB;
}

static double small_growth(double t)
{
	return BASE + fmin(t / 60, 1) * 20 * MIB;
}

static void test_reserved(void)
{
	struct result r = run_reserve(growing_addresses, small_growth, 7200);

	tap_eq(r.alerts, 0, "no alert for address space that grows without memory");
	tap_ok(r.row.flags & MEMWATCH_GROWTH_F_RESERVED,
	       "address space that grows without memory is flagged");
	r = run_reserve(growing_addresses, flat_signal, 7200);
	tap_eq(r.alerts, 0, "no alert for address space, if the memory never grew");
	tap_ok(r.row.flags & MEMWATCH_GROWTH_F_RESERVED,
	       "address space that grows is flagged if the memory never grew");
	r = run_reserve(flat_signal, leak_10k, 7200);
	tap_ok(!(r.row.flags & MEMWATCH_GROWTH_F_RESERVED),
	       "address space that grows with its memory is not flagged");
	r = run_reserve(flat_signal, small_growth, 7200);
	tap_ok(!(r.row.flags & MEMWATCH_GROWTH_F_RESERVED),
	       "address space that does not grow is not flagged");
}

/* Linear growth for 15 minutes, to 39 % of the headroom, that begins at fill_begins. */
static double fill_begins;
static double fills_late(double t)
{
	return BASE + (fmod(t, 10) / 5 + fmin(300, fmax(0, t - fill_begins) / 3)) * MIB;
}

/* The bins begin with the first growth, so try all phases of the fill against them. */
static void test_fill(void)
{
	unsigned int alerts = 0;

	for (fill_begins = 1000; fill_begins < 1080; fill_begins += 5)
		alerts += run_shape(fills_late, 4000, 5, 869 * MIB).alerts;
	tap_eq(alerts, 0, "no alert for caches that fill in 15 minutes below a limit");
}

/* An exponential approach to a level below the limit. */
static double rest_height, rest_tau;
static double comes_to_rest(double t)
{
	return 8 * MIB + rest_height * (1 - exp(-t / rest_tau));
}

static void test_rest(void)
{
	unsigned int alerts = 0, runs = 0;

	for (rest_tau = 5; rest_tau < 2000; rest_tau *= 1.3) {
		for (rest_height = 10 * MIB; rest_height < 96 * MIB; rest_height += 5 * MIB) {
			alerts += run_shape(comes_to_rest, rest_tau * 6, 1, 108 * MIB).alerts;
			runs++;
		}
	}
	tap_eq(alerts, 0, "no alert for %u processes that settle below their limit", runs);
}

/* Feeds a sample of @mib MiB at @t seconds. */
static int feed_sample(struct memwatch_growth *growth, uint64_t t, uint32_t tgid, const char *comm,
		       uint64_t mib)
{
	MEMWATCH_OPTS(memwatch_growth_sample, sample, .time_ns = t * 1000000000, .tgid = tgid,
		      .anon_bytes = mib * MIB, .limit_bytes = MEMWATCH_GROWTH_NONE);

	strcpy(sample.comm, comm);
	return memwatch_growth_feed(growth, &sample);
}

static void test_identity(void)
{
	struct memwatch_growth_row row = { .sz = sizeof(row) };
	struct memwatch_growth *growth;

	memwatch_growth_new(ctx, &growth);
	feed_sample(growth, 0, 1, "sh", 50);
	feed_sample(growth, 100, 1, "sh", 56);
	feed_sample(growth, 105, 1, "prog", 2);
	memwatch_growth_get_row(growth, 0, &row);
	tap_eq(row.first_ns, 105000000000ULL, "another name with less memory is an exec");
	tap_str_eq(row.comm, "prog", "an exec changes the name");
	feed_sample(growth, 110, 1, "renamed", 3);
	memwatch_growth_get_row(growth, 0, &row);
	tap_eq(row.first_ns, 105000000000ULL, "another name with more memory is the same program");
	tap_str_eq(row.comm, "renamed", "a program that changes its name stays the same program");
	tap_eq(feed_sample(growth, 109, 1, "renamed", 3), -EINVAL,
	       "a sample older than the last one is refused");
	for (uint32_t i = 2; i < 3000; i++)
		feed_sample(growth, 110, i * 7919, "p", 1);
	tap_eq(memwatch_growth_get_row(growth, 2998, &row), 1, "2999 processes have a row");
	tap_eq(row.tgid, 2999U * 7919, "rows are in the order of the first samples");
	tap_eq(memwatch_growth_get_row(growth, 2999, &row), 0,
	       "there are no more rows than processes");
	memwatch_growth_unref(growth);
}

/* The kernel ends what it has said of a program when the process executes another one. */
static void test_exec(void)
{
	MEMWATCH_OPTS(memwatch_growth_span, span);
	struct memwatch_growth_row row = { .sz = sizeof(row) };
	struct memwatch_growth *growth;
	unsigned int open = 0, level = 0;

	memwatch_growth_new(ctx, &growth);
	for (uint64_t t = 0; t < 60; t++)
		feed_sample(growth, t, 1, "sh", 50 + 5 * t);
	feed_sample(growth, 60, 1, "prog", 2);
	for (unsigned int i = 0; memwatch_growth_get_span(growth, 0, i, &span) == 1; i++) {
		open += span.end_ns != 60000000000ULL;
		level |= span.level;
	}
	tap_eq(level, MEMWATCH_GROWTH_NOTICE, "a program that grows fast has a notice");
	tap_eq(open, 0, "an exec ends the notice");
	memwatch_growth_get_row(growth, 0, &row);
	tap_str_eq(row.comm, "sh", "the program before an exec stays in the list");
	tap_eq(row.verdict, MEMWATCH_GROWTH_INSUFFICIENT, "it does not grow any more");
	memwatch_growth_get_row(growth, 1, &row);
	tap_str_eq(row.comm, "prog", "the program after an exec has a row of its own");
	memwatch_growth_unref(growth);
}

int main(void)
{
	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_slow_leak();
	test_notice_in_time();
	test_fast_leak();
	test_leak_after_start();
	test_clear();
	test_second_alert();
	test_spurt();
	test_spans();
	test_time_to_limit();
	test_benign();
	test_reserved();
	test_fill();
	test_rest();
	test_identity();
	test_exec();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
