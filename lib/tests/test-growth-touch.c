// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What is known of touch decides about growth of days: a cache that fills and is in use stays a
 * notice; growth that is not used, or of which nothing is known, is an alert. It also decides about
 * growth far from any limit, and about a process that seems to start.
 */
#include <stdint.h>
#include <stdlib.h>

#include <memwatch/growth.h>

#include "../../selftests/tap.h"

#define MIB (1ULL << 20)

struct result {
	struct memwatch_growth_row row;
	unsigned int alerts, notices;
};

struct growth {
	double seconds, step; /* how long it is watched, and the time between two samples */
	double rate;	      /* bytes a second */
	uint64_t base, known; /* the bytes before it, and those after which touch is known */
	uint64_t limit;
	double ends;	 /* seconds after which it grows no more, 0: never */
	double followed; /* second from which touch is followed, 0: since the notice */
};

static const struct growth days = { 72 * 3600, 60,	 2.0 * MIB / 3600,
				    100 * MIB, 16 * MIB, MEMWATCH_GROWTH_NONE,
				    0,	       0 };
static const struct growth hour = {
	3600, 5, 100 * 1024, 100 * MIB, 16 * MIB, MEMWATCH_GROWTH_NONE, 0, 0,
};
/* The monitor was started again after 50 minutes. */
static const struct growth restarted = {
	5700, 5, 100 * 1024, 100 * MIB, 16 * MIB, MEMWATCH_GROWTH_NONE, 0, 3000,
};
/* As a program that loads its data for eight minutes, but it does not stop. */
static const struct growth start = { 540, 5, 1.2 * MIB, 20 * MIB, 120 * MIB, 667 * MIB, 0, 0 };
/* The same, sampled each second, and touch is known of what is gained in the end. */
static const struct growth told_late = { 540, 1, 1.2 * MIB, 20 * MIB, 560 * MIB, 667 * MIB, 0, 0 };
/* A small program that does stop, at 80 % of its limit. */
static const struct growth loaded = { 840, 5, 0.08 * MIB, 4 * MIB, 1 * MIB, 45 * MIB, 400, 0 };

/* What is known of touch instead of the percentage that is cold. */
enum { NOT_FOLLOWED = 101, NOT_YET_KNOWN };

/* Feeds the growth @g, of which @cold percent are not used. */
static struct result run_growth(struct memwatch_ctx *ctx, const struct growth *g, unsigned int cold)
{
	MEMWATCH_OPTS(memwatch_growth_sample, sample, .tgid = 7, .comm = "x",
		      .limit_bytes = g->limit);
	struct result r = { .row = { .sz = sizeof(r.row) } };
	uint64_t known = g->known + (uint64_t)(g->rate * g->followed);
	struct memwatch_growth *growth;
	bool followed = cold != NOT_FOLLOWED;

	if (memwatch_growth_new(ctx, &growth))
		exit(EXIT_FAILURE);
	for (double t = 0; t < g->seconds; t += g->step) {
		uint64_t grown = (uint64_t)(g->rate * (g->ends && t > g->ends ? g->ends : t));
		int event;

		sample.time_ns = (uint64_t)(t * 1e9);
		sample.anon_bytes = g->base + grown;
		sample.untouched_ns = followed && t >= g->followed ? 60 * 1000000000ULL : 0;
		sample.gained_bytes = sample.cold_bytes = 0;
		sample.cold_low_bytes = sample.cold_high_bytes = 0;
		if (sample.untouched_ns && cold <= 100 && grown >= known) {
			sample.gained_bytes = grown - known;
			sample.cold_bytes = sample.gained_bytes / 100 * cold;
			sample.cold_low_bytes = sample.cold_high_bytes = sample.cold_bytes;
		}
		event = memwatch_growth_feed(growth, &sample);
		r.alerts += !!(event & MEMWATCH_GROWTH_ALERT);
		r.notices += !!(event & MEMWATCH_GROWTH_NOTICE);
		/* As the monitor does. */
		if (event & MEMWATCH_GROWTH_SETTLE)
			followed = false;
	}
	memwatch_growth_get_row(growth, 0, &r.row);
	memwatch_growth_unref(growth);
	return r;
}

static void test_days(struct memwatch_ctx *ctx)
{
	struct result r = run_growth(ctx, &days, NOT_FOLLOWED);

	tap_eq(r.alerts, 1, "growth of days has an alert if nothing is known of what is used");
	tap_eq(r.row.reason, MEMWATCH_GROWTH_REASON_HEIGHT, "the alert is by the rule height");
	r = run_growth(ctx, &days, 2);
	tap_eq(r.alerts, 0, "growth of days that is in use has no alert");
	tap_ok(r.notices >= 1, "growth of days that is in use has a notice");
	r = run_growth(ctx, &days, 30);
	tap_eq(r.alerts, 1, "growth of days of which a third is not used has an alert");
	tap_eq(r.row.reason, MEMWATCH_GROWTH_REASON_HEIGHT,
	       "the alert about growth of which a third is not used is by the rule height");
}

/* Growth that was noticed after 14 minutes: what it gained before is not part of the rest. */
static void test_since_notice(struct memwatch_ctx *ctx)
{
	static const struct growth slow = {
		1200, 5, 10240, 100 * MIB, 9 * MIB, MEMWATCH_GROWTH_NONE, 0, 0,
	};
	struct result r = run_growth(ctx, &slow, 90);
	double seconds = (double)(r.row.last_ns - r.row.since_ns) / 1e9;
	double rate = (double)r.row.growth_bytes / seconds;

	tap_ok(r.row.since_ns == r.row.first_notice_ns, "growth of which a part is cold is told "
							"since its notice");
	tap_ok(seconds > 300 && rate > 0.9 * slow.rate && rate < 1.2 * slow.rate,
	       "what it has gained is that since then: %.0f bytes a second in %.0f s", rate,
	       seconds);
}

static void test_untouched(struct memwatch_ctx *ctx)
{
	struct result r = run_growth(ctx, &hour, 80);

	tap_eq(r.alerts, 1, "growth of an hour of which 80 %% are not used has an alert");
	tap_eq(r.row.reason, MEMWATCH_GROWTH_REASON_UNTOUCHED,
	       "the alert about growth of an hour is by the rule untouched");
	r = run_growth(ctx, &hour, 70);
	tap_eq(r.alerts, 0, "growth of an hour of which 70 %% are not used has no alert");
	r = run_growth(ctx, &hour, NOT_FOLLOWED);
	tap_eq(r.alerts, 0, "growth of an hour of which nothing is known has no alert");
	r = run_growth(ctx, &restarted, 80);
	tap_eq(r.alerts, 1, "a process that is followed late has an alert, too");
	tap_ok(r.row.first_alert_ns >= 5340000000000ULL,
	       "it has it when it was followed for 40 minutes, to a minute: after %.0f s",
	       (double)r.row.first_alert_ns / 1e9 - restarted.followed);
}

/* Near its limit there is an alert in any case: how much was used then? */
static uint64_t used_at_alert(struct memwatch_ctx *ctx, const struct growth *g, unsigned int cold,
			      const char *what)
{
	struct result r = run_growth(ctx, g, cold);

	tap_eq(r.row.reason, MEMWATCH_GROWTH_REASON_LIMIT,
	       "a process that starts and gains what %s has an alert by the rule limit", what);
	return g->base + (uint64_t)(g->rate * (double)r.row.first_alert_ns / 1e9);
}

static void test_start(struct memwatch_ctx *ctx)
{
	const uint64_t late = start.limit / 100 * 90, soon = start.limit / 100 * 80;

	tap_ok(used_at_alert(ctx, &start, NOT_FOLLOWED, "nobody follows") < soon,
	       "it has one below 80 %% of its limit, if nobody follows what it touches");
	tap_ok(used_at_alert(ctx, &start, NOT_YET_KNOWN, "may be in use") > late,
	       "it has none below 90 %% of its limit, as long as touch does not tell");
	tap_ok(used_at_alert(ctx, &start, 60, "is 60 % cold") > late,
	       "it has none below 90 %% of its limit, if that is 60 %% cold");
	tap_ok(used_at_alert(ctx, &start, 90, "is 90 % cold") < soon,
	       "it has one below 80 %% of its limit, if that is 90 %% cold");
	tap_ok(used_at_alert(ctx, &told_late, 90, "is 90 % cold as far as is known") >
		       told_late.base + told_late.known + 3 * MIB,
	       "it has none before touch is known of 4 MiB");
}

static void test_end_of_start(struct memwatch_ctx *ctx)
{
	struct result r = run_growth(ctx, &loaded, 40);

	tap_eq(r.notices, 1, "a process that loads up to 80 %% of its limit has a notice");
	tap_eq(r.alerts, 0,
	       "it has no alert, also when its growth has settled and nobody follows it any more");
}

int main(void)
{
	struct memwatch_ctx *ctx;

	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_days(ctx);
	test_since_notice(ctx);
	test_untouched(ctx);
	test_start(ctx);
	test_end_of_start(ctx);
	memwatch_ctx_unref(ctx);
	return tap_done();
}
