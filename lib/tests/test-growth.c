// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth detectors against what is known in closed form: arithmetic against
 * 128 bits and floating point, a line against its slope, a leak against the time
 * it should take to find it, and what is no leak against silence.
 */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <memwatch/growth.h>

#include "growth/governor.h"
#include "growth/trace.h"
#include "bpf/growth-maps.h"

#include "../../selftests/tap.h"

#define MIB (1ULL << 20)

static struct memwatch_ctx *ctx;
static uint64_t seed = 88172645463325252ULL;

static uint64_t any(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* ------------------------------------------------------------- arithmetic */

static void test_sizes(void)
{
	tap_ok(sizeof(struct mw_growth_process) <= 256, "state of a process: %zu bytes",
	       sizeof(struct mw_growth_process));
	tap_ok(sizeof(struct mw_growth_process) + sizeof(struct mw_growth_history) <= 1536,
	       "of one that grows: %zu",
	       sizeof(struct mw_growth_process) + sizeof(struct mw_growth_history));
}

static void test_multiply(void)
{
	unsigned int bad = 0;

	for (int i = 0; i < 500000; i++) {
		uint64_t a = any() >> (any() % 64), b = any() >> (any() % 64);
		unsigned __int128 want = (unsigned __int128)a * b;
		struct mw_growth_wide product = mw_growth_multiply(a, b);

		bad += product.high != (uint64_t)(want >> 64) || product.low != (uint64_t)want;
	}
	tap_ok(!bad, "a product of 128 bits is that of the compiler");
}

static void test_ppm(void)
{
	unsigned int bad = 0;

	for (int i = 0; i < 200000; i++) {
		/* Below 2^100, so that the oracle's product fits. */
		uint64_t a = any() >> (14 + any() % 40), b = any() >> (14 + any() % 40);
		struct mw_growth_wide whole = mw_growth_multiply(a | 1, b | 1);
		unsigned __int128 w = ((unsigned __int128)whole.high << 64) | whole.low;
		unsigned __int128 p = w / 1000003 * (any() % 1000004);
		struct mw_growth_wide part = { (uint64_t)(p >> 64), (uint64_t)p };

		bad += mw_growth_ppm(&part, &whole) != (uint32_t)(p * 1000000 / w);
	}
	tap_ok(!bad, "a ratio in millionths is exact");
}

/* ------------------------------------------------------------------ lines */

static struct mw_growth_history history;

/* The bins of level 1 are @values, the newest last. */
static void fill(const uint32_t *values, unsigned int nr)
{
	memset(&history, 0, sizeof(history));
	history.level[1].bin = nr + 1;
	history.level[1].ring[0] = MW_GROWTH_MISSING;
	for (unsigned int i = 0; i < nr; i++)
		history.level[1].ring[(i + 1) % MW_GROWTH_BINS] = values[i];
}

/* R squared and slope in pages a bin, of the envelope, as a textbook has it. */
static void textbook(const uint32_t *values, unsigned int nr, double *slope, double *r2)
{
	double x = 0, y = 0, xx = 0, xy = 0, yy = 0, n = 0;
	uint32_t low = UINT32_MAX;

	for (unsigned int i = nr; i-- > 0;) {
		double dx, dy;

		if (values[i] == MW_GROWTH_MISSING)
			continue;
		low = values[i] < low ? values[i] : low;
		dx = i;
		dy = low;
		n++;
		x += dx;
		y += dy;
		xx += dx * dx;
		xy += dx * dy;
		yy += dy * dy;
	}
	*slope = (n * xy - x * y) / (n * xx - x * x);
	*r2 = (n * xy - x * y) * (n * xy - x * y) / ((n * xx - x * x) * (n * yy - y * y));
}

static void test_line(void)
{
	uint32_t values[32];

	for (unsigned int i = 0; i < 32; i++)
		values[i] = 1000 + 200 * i; /* 200 pages in 80 s: 10240 bytes a second */
	fill(values, 32);
	tap_ok(mw_growth_fit_window(&history, 1, 19) && history.attempt.slope_bps == 10240 &&
		       history.attempt.r2_permille == 1000 && history.attempt.score == 100 &&
		       history.attempt.growth == 18 * 200,
	       "a line: slope %llu, R squared %u, score %u",
	       (unsigned long long)history.attempt.slope_bps, history.attempt.r2_permille,
	       history.attempt.score);
	for (unsigned int i = 0; i < 32; i++)
		values[i] = 1000;
	fill(values, 32);
	tap_ok(mw_growth_fit_window(&history, 1, 19) && !history.attempt.slope_bps &&
		       !history.attempt.score && !history.attempt.r2_permille,
	       "a flat series has no slope and no score");
	for (unsigned int i = 0; i < 32; i++)
		values[i] = 1000 + (i > 20 ? 5000 : 0);
	fill(values, 32);
	mw_growth_fit_window(&history, 1, 32);
	tap_ok(!history.attempt.score, "one step has no score (%u)", history.attempt.score);
}

static void test_textbook(void)
{
	unsigned int bad = 0, tried = 0;

	for (int round = 0; round < 20000; round++) {
		uint32_t values[32], scale = 1U << (any() % 24);
		double slope, r2;

		for (unsigned int i = 0; i < 32; i++) {
			values[i] = (uint32_t)(any() % scale + i * (any() % (scale / 8 + 1)));
			if (any() % 10 == 0 && i != 31)
				values[i] = MW_GROWTH_MISSING;
		}
		fill(values, 32);
		if (!mw_growth_fit_window(&history, 1, 32) || !history.attempt.growth)
			continue;
		textbook(values, 32, &slope, &r2);
		tried++;
		if (fabs((double)history.attempt.slope_bps - floor(slope * 4096 / 80)) > 1.01 ||
		    fabs(history.attempt.r2_permille - r2 * 1000) > 1.01)
			bad++;
	}
	tap_ok(!bad && tried > 10000, "%u random windows agree with the textbook", tried);
}

/* ----------------------------------------------------------------- traces */

typedef double (*shape)(double t);

struct result {
	struct memwatch_growth_row row;
	unsigned int alerts, clears;
};

static struct result run(shape f, double seconds, double step, uint64_t limit)
{
	struct memwatch_growth_sample sample = { .tgid = 7, .comm = "x" };
	struct memwatch_growth *growth;
	struct result r = { .row = { .sz = sizeof(r.row) } };

	if (memwatch_growth_new(ctx, &growth))
		exit(EXIT_FAILURE);
	for (double t = 0; t <= seconds; t += step) {
		int event;

		sample.time_ns = (uint64_t)(t * 1e9);
		sample.anon_bytes = (uint64_t)f(t);
		sample.file_bytes = 20 * MIB;
		sample.vsz_bytes = sample.anon_bytes + 300 * MIB;
		sample.limit_bytes = limit ? limit : MEMWATCH_GROWTH_NONE;
		event = memwatch_growth_feed(growth, &sample);
		r.alerts += event == MEMWATCH_GROWTH_ALERT;
		r.clears += event == MEMWATCH_GROWTH_CLEAR;
	}
	memwatch_growth_row(growth, 0, &r.row);
	memwatch_growth_unref(growth);
	return r;
}

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
static double leak_ends(double t)
{
	return BASE + 102400 * fmin(t, 2400);
}
/* What a start-up of 14 s leaves is 10 MiB, then 130 KiB/s; as redis did. */
static double leak_started(double t)
{
	return (fmin(t, 14) + 4) * MIB + (t > 24 ? (t - 24) * 133120 : 0);
}
static double leak_curve(double t)
{
	return BASE + t * t / 3600 * 64 * 1024;
}
static double leak_bursts_out(double t)
{
	return BASE + 2048 * t + (t > 7200 ? (t - 7200) * 5 * MIB : 0);
}
static double flat(double t)
{
	return BASE + fmod(t, 300) * 68;
}
static double saw(double t)
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
static double steps(double t)
{
	return BASE + exp2(floor(log2(1 + t / 60))) * MIB;
}
static double daily(double t)
{
	return 300 * MIB + 100 * MIB * sin(t * 2 * M_PI / 86400);
}
/* 16 KiB/s for 25 minutes, to 25 MiB; 17 of them were held half an hour before. */
static double comes_back(double t)
{
	double bump = t > 4300 && t < 4700 ? 17 : 0;

	return BASE + (fmod(t, 10) / 5 + bump + fmin(25, fmax(0, t - 5000) / 64)) * MIB;
}
static double cache(double t)
{
	return BASE + fmin(300, t / 3) * MIB;
}

static bool is_near(double a, double b, double share)
{
	return fabs(a - b) <= share * b;
}

static void test_leaks(void)
{
	struct result r = run(leak_10k, 1800, 5, 0);

	tap_ok(r.alerts == 1 && r.row.verdict == MEMWATCH_GROWTH_LEAK &&
		       r.row.reason == MEMWATCH_GROWTH_REASON_STEADY &&
		       is_near((double)r.row.slope, 10240, 0.001),
	       "10 KiB/s is found within 30 minutes: at %.0f s",
	       (double)r.row.first_alert_ns / 1e9);
	r = run(leak_1m, 855, 1, 356 * MIB);
	tap_ok(r.alerts == 1 && r.row.alert_eta_ns >= 120 * 1000000000ULL &&
		       is_near((double)r.row.alert_eta_ns / 1e9,
			       856 - (double)r.row.first_alert_ns / 1e9, 0.03),
	       "1 MiB/s is told of two minutes before the limit: %.0f s, which is right",
	       (double)r.row.alert_eta_ns / 1e9);
	r = run(leak_10m, 85, 1, 356 * MIB);
	tap_ok(r.alerts == 1 && r.row.first_alert_ns <= 72800000000ULL &&
		       r.row.first_alert_ns > 60000000000ULL,
	       "10 MiB/s with half of its time left: at %.0f s of 60 to 85.6",
	       (double)r.row.first_alert_ns / 1e9);
	r = run(leak_10m, 85, 5, 356 * MIB);
	tap_ok(r.alerts == 1, "the same at 5 s a sample: at %.0f s",
	       (double)r.row.first_alert_ns / 1e9);
	r = run(leak_saw, 1800, 5, 0);
	tap_ok(r.alerts == 1 && is_near((double)r.row.slope, 51200, 0.02),
	       "50 KiB/s below a saw of 60 MiB: %llu", (unsigned long long)r.row.slope);
	r = run(leak_slow, 172800, 20, 0);
	tap_ok(r.alerts == 1 && r.row.reason == MEMWATCH_GROWTH_REASON_SLOW &&
		       is_near((double)r.row.slope, 1456, 0.01),
	       "5 MB/h in two days, slope %llu", (unsigned long long)r.row.slope);
	r = run(leak_started, 150, 1, 35 * MIB);
	tap_ok(r.alerts == 1 && r.row.since_ns >= 14000000000ULL &&
		       r.row.since_ns <= 36000000000ULL &&
		       is_near((double)r.row.slope, 133120, 0.01),
	       "one that begins as the start-up ends: at %.0f s of 24 to 158, since %.0f s",
	       (double)r.row.first_alert_ns / 1e9, (double)r.row.since_ns / 1e9);
	r = run(leak_ends, 7200, 5, 0);
	tap_ok(r.alerts == 1 && r.clears == 1 && r.row.verdict == MEMWATCH_GROWTH_STABLE &&
		       r.row.first_alert_ns != MEMWATCH_GROWTH_NONE,
	       "a leak that ends is cleared, and is remembered");
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static void test_time_to_limit(void)
{
	/* The tops of the saw, as sampled, are 50 MiB up and meet the limit after 3891 s. */
	struct result r = run(leak_saw, 2400, 5, 100 * MIB + 240 * MIB);

	tap_ok(is_near(seconds(r.row.eta_ns), 3891 - 2400, 0.01),
	       "the tops of a saw meet the limit, not its foot: in %.0f s of 1491",
	       seconds(r.row.eta_ns));
	tap_ok(seconds(r.row.eta_low_ns) < 1491 && seconds(r.row.eta_high_ns) > 1491 &&
		       seconds(r.row.eta_high_ns) < 1.3 * seconds(r.row.eta_low_ns),
	       "and the interval is narrow: %.0f to %.0f s", seconds(r.row.eta_low_ns),
	       seconds(r.row.eta_high_ns));
	/* 500 MiB at 5 MiB/s; the two hours before are what the windows know. */
	r = run(leak_bursts_out, 7230, 1, (uint64_t)leak_bursts_out(7300));
	tap_ok(is_near(seconds(r.row.eta_ns), 70, 0.02) && r.row.since_ns >= 7195000000000ULL,
	       "what is new counts, not the trend before it: in %.0f s of 70",
	       seconds(r.row.eta_ns));
	/* 256 MiB up after 3840 s. */
	r = run(leak_curve, 1920, 5, 100 * MIB + 256 * MIB);
	tap_ok(seconds(r.row.eta_low_ns) < 1920 && seconds(r.row.eta_high_ns) > 1920 &&
		       !is_near(seconds(r.row.eta_ns), 1920, 0.2),
	       "a curve is no line, and the interval knows: %.0f to %.0f s, not %.0f",
	       seconds(r.row.eta_low_ns), seconds(r.row.eta_high_ns), seconds(r.row.eta_ns));
}

static void test_benign(void)
{
	static const struct {
		const char *name;
		shape f;
		double seconds, step;
		uint64_t limit;
	} cases[] = {
		{ "flat", flat, 7200, 5, 0 },
		{ "saw of 60 MiB in 30 s", saw, 14400, 5, 0 },
		{ "warm-up of 10 minutes", warm_up, 14400, 5, 0 },
		{ "the same below a limit", warm_up, 14400, 5, 512 * MIB },
		{ "start-up to 600 MiB of 1 GiB", start_up, 3600, 1, 1024 * MIB },
		{ "tables that double", steps, 14400, 5, 0 },
		{ "a daily wave", daily, 259200, 20, 0 },
		{ "what comes back to where it was", comes_back, 6600, 5, 0 },
		{ "a cache of 300 MiB that fills in 15 minutes", cache, 7200, 5, 0 },
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct result r = run(cases[i].f, cases[i].seconds, cases[i].step, cases[i].limit);

		tap_ok(!r.alerts && r.row.verdict != MEMWATCH_GROWTH_LEAK, "silent: %s",
		       cases[i].name);
	}
}

/* Address space @reserved, memory @held, 4 samples a minute: what comes of it. */
static struct result reserve(shape reserved, shape held, double seconds)
{
	struct memwatch_growth_sample sample = { .tgid = 7, .comm = "x" };
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
	memwatch_growth_row(growth, 0, &r.row);
	memwatch_growth_unref(growth);
	return r;
}

static double addresses(double t)
{
	return BASE + t * MIB;
}
static double some(double t)
{
	return BASE + fmin(t / 60, 1) * 20 * MIB;
}

static void test_reserved(void)
{
	struct result r = reserve(addresses, some, 7200);

	tap_ok(!r.alerts && r.row.flags & MEMWATCH_GROWTH_F_RESERVED,
	       "address space that grows alone is a class of its own, no alert");
	r = reserve(addresses, flat, 7200);
	tap_ok(!r.alerts && r.row.flags & MEMWATCH_GROWTH_F_RESERVED,
	       "also of a process whose memory never grew");
	r = reserve(flat, leak_10k, 7200);
	tap_ok(!(r.row.flags & MEMWATCH_GROWTH_F_RESERVED),
	       "address space with memory behind it is not");
	r = reserve(flat, some, 7200);
	tap_ok(!(r.row.flags & MEMWATCH_GROWTH_F_RESERVED), "nor is one that is steady");
}

/* A quarter of an hour of linear growth, whenever the bins begin, to 39 % of the headroom. */
static double fill_begins;
static double fills(double t)
{
	return BASE + (fmod(t, 10) / 5 + fmin(300, fmax(0, t - fill_begins) / 3)) * MIB;
}

static void test_fill(void)
{
	unsigned int alerts = 0;

	for (fill_begins = 1000; fill_begins < 1080; fill_begins += 5)
		alerts += run(fills, 4000, 5, 869 * MIB).alerts;
	tap_ok(!alerts, "silent: what fills in 15 minutes below a limit (%u alerts)", alerts);
}

/* Whatever comes to rest below the limit, from wherever one begins to look. */
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
			alerts += run(comes_to_rest, rest_tau * 6, 1, 108 * MIB).alerts;
			runs++;
		}
	}
	tap_ok(!alerts, "silent: %u that come to rest below their limit (%u alerts)", runs, alerts);
}

/* -------------------------------------------------------------- identity */

static int feed(struct memwatch_growth *growth, uint64_t t, uint32_t tgid, const char *comm,
		uint64_t mib)
{
	struct memwatch_growth_sample sample = {
		.time_ns = t * 1000000000,
		.tgid = tgid,
		.anon_bytes = mib * MIB,
		.limit_bytes = MEMWATCH_GROWTH_NONE,
	};

	strcpy(sample.comm, comm);
	return memwatch_growth_feed(growth, &sample);
}

static void test_identity(void)
{
	struct memwatch_growth_row row = { .sz = sizeof(row) };
	struct memwatch_growth *growth;

	memwatch_growth_new(ctx, &growth);
	feed(growth, 0, 1, "sh", 50);
	feed(growth, 100, 1, "sh", 60);
	feed(growth, 105, 1, "prog", 2);
	memwatch_growth_row(growth, 0, &row);
	tap_ok(row.first_ns == 105000000000ULL && !strcmp(row.comm, "prog"),
	       "another name with less memory is an exec: judged anew");
	feed(growth, 110, 1, "renamed", 3);
	memwatch_growth_row(growth, 0, &row);
	tap_ok(row.first_ns == 105000000000ULL && !strcmp(row.comm, "renamed"),
	       "another name with more is the same program");
	tap_ok(feed(growth, 109, 1, "renamed", 3) == -EINVAL, "time does not go back");
	for (uint32_t i = 2; i < 3000; i++)
		feed(growth, 110, i * 7919, "p", 1);
	tap_ok(memwatch_growth_row(growth, 2998, &row) == 1 && row.tgid == 2999U * 7919 &&
		       memwatch_growth_row(growth, 2999, &row) == 0,
	       "3000 processes, in the order of their first samples");
	memwatch_growth_unref(growth);
}

/* ---------------------------------------------------------------- governor */

static void test_governor(void)
{
	const uint64_t second = 1000000000ULL;
	struct mw_governor gov;

	mw_governor_init(&gov, 5000000000ULL, 1000, 10000, 128);
	mw_governor_round(&gov, 1000000);
	tap_ok(gov.period_ns == 5000000000ULL && gov.gap_ns == 100000000ULL,
	       "a round of 1 ms: every 5 s, and 0.1 s when asked for");
	mw_governor_init(&gov, 5000000000ULL, 1000, 10000, 128);
	mw_governor_round(&gov, 20000000);
	tap_ok(gov.period_ns == 20000000000ULL && gov.gap_ns == 2000000000ULL,
	       "one of 20 ms: every 20 s, and 2 s");
	mw_governor_events(&gov, 20000, second);
	mw_governor_events(&gov, 20000, second);
	tap_ok(gov.attached && gov.width == 512, "over budget twice: it looks less often");
	mw_governor_events(&gov, 20000, second);
	tap_ok(!gov.attached && gov.detaches == 1, "three times: taken off");
	for (int i = 0; i < 6; i++)
		mw_governor_events(&gov, 0, 10 * second);
	tap_ok(gov.attached, "a minute later it is tried again");
	for (int i = 0; i < 3; i++)
		mw_governor_events(&gov, 20000, second);
	for (int i = 0; i < 11; i++)
		mw_governor_events(&gov, 0, 10 * second);
	tap_ok(!gov.attached, "and after that the pause is longer");
	mw_governor_events(&gov, 0, 10 * second);
	for (int i = 0; i < 12; i++)
		mw_governor_events(&gov, 100, 10 * second);
	tap_ok(gov.attached && gov.width == 128, "when it is calm the first width comes back");
}

/*
 * A storm of an hour that takes @ppm whenever the program is on: the mean of any time
 * that ends when it is tried again is within the budget.
 */
static double storm(uint32_t ppm, double *worst)
{
	const uint64_t second = 1000000000ULL;
	struct mw_governor gov;
	double taken = 0, time = 0;

	*worst = 0;
	mw_governor_init(&gov, 5 * second, 1000, 10000, 128);
	while (time < 3600) {
		bool on = gov.attached;
		double step = on && gov.overruns ? 1 : 10;

		mw_governor_events(&gov, on ? ppm : 0, (uint64_t)step * second);
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
		mean = storm(ppms[i], &worst);
		if (mean > most)
			most = mean;
		if (worst > most)
			most = worst;
	}
	tap_ok(most <= 10000, "storms of 0.9 to 40 %%: at most %.2f %% in the mean", most / 1e4);
}

/* ------------------------------------------------------------------ trace */

static int read_trace(const char *text, struct memwatch_growth_sample *last)
{
	FILE *file = fmemopen((void *)text, strlen(text), "r");
	struct memwatch_trace *trace;
	int err = mw_trace_open_file(ctx, file, "test", &trace), n = 0;

	if (err)
		return err;
	while ((err = memwatch_trace_next(trace, last)) == 1)
		n++;
	memwatch_trace_close(trace);
	return err ? err : n;
}

#define HEAD "time_s,pid,comm,anon_kb,file_kb,shmem_kb,swap_kb,vsz_kb,limit_kb\n"

static void test_trace(void)
{
	static const struct {
		const char *text, *error;
	} bad[] = {
		{ "", "line 1" },
		{ "a,b\n", "line 1" },
		{ HEAD "1,2,x,1,2,3,4,5\n", "line 2: limit_kb: is missing" },
		{ HEAD "1,2,x,1,2,3,4,5,\n0,2,x,1,2,3,4,5,\n", "line 3: time_s" },
		{ HEAD "-1,2,x,1,2,3,4,5,\n", "line 2: time_s" },
		{ HEAD "1e9,2,x,1,2,3,4,5,\n", "line 2: time_s" },
		{ HEAD "nan,2,x,1,2,3,4,5,\n", "line 2: time_s" },
		{ HEAD "1,-2,x,1,2,3,4,5,\n", "line 2: pid" },
		{ HEAD "1,4294967296,x,1,2,3,4,5,\n", "line 2: pid" },
		{ HEAD "1,2,x,99999999999999999999,2,3,4,5,\n", "line 2: anon_kb" },
		{ HEAD "1,2,x,1,2,3,4,5,x\n", "line 2: limit_kb" },
		{ HEAD "1,2,\"x,1,2,3,4,5,\n", "line 2: comm: a quote" },
		{ HEAD "1,2,\"x\"y,1,2,3,4,5,\n", "line 2: comm: text" },
	};
	struct memwatch_growth_sample s;

	tap_ok(read_trace(HEAD "1.25,2,\"a,\"\"b\",1,2,3,4,5,6,more\r\n\n2,2,x,1,2,3,4,5,", &s) ==
		       2,
	       "a trace with quotes, a further column, an empty line and no last newline");
	tap_ok(read_trace(HEAD "1.25,2,\"a,\"\"b\",1,2,3,4,5,6\n", &s) == 1 &&
		       s.time_ns == 1250000000 && s.tgid == 2 && !strcmp(s.comm, "a,\"b") &&
		       s.anon_bytes == 1024 && s.file_bytes == 2048 && s.shmem_bytes == 3072 &&
		       s.swap_bytes == 4096 && s.vsz_bytes == 5120 && s.limit_bytes == 6144,
	       "each field is where it belongs");
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int err = read_trace(bad[i].text, &s);

		tap_ok(err == -EBADMSG && !strncmp(memwatch_ctx_error(ctx), bad[i].error,
						   strlen(bad[i].error)),
		       "refused: %s", memwatch_ctx_error(ctx));
	}
}

int main(void)
{
	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_sizes();
	test_multiply();
	test_ppm();
	test_line();
	test_textbook();
	test_leaks();
	test_time_to_limit();
	test_benign();
	test_reserved();
	test_fill();
	test_rest();
	test_identity();
	test_governor();
	test_storm();
	test_trace();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
