// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What is known of touch decides about growth of days: a cache that fills and is in use stays a
 * notice; growth that is not used, or of which nothing is known, is an alert.
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

/*
 * Feeds three days of growth by 2 MiB an hour, of which @cold percent are not used; 101: that is
 * not known.
 */
static struct result run_cache(struct memwatch_ctx *ctx, unsigned int cold)
{
	MEMWATCH_OPTS(memwatch_growth_sample, sample, .tgid = 7, .comm = "x",
		      .limit_bytes = MEMWATCH_GROWTH_NONE);
	struct result r = { .row = { .sz = sizeof(r.row) } };
	struct memwatch_growth *growth;

	if (memwatch_growth_new(ctx, &growth))
		exit(EXIT_FAILURE);
	for (uint64_t t = 0; t < 72 * 3600; t += 60) {
		uint64_t grown = 2 * MIB * t / 3600;
		int event;

		sample.time_ns = t * 1000000000;
		sample.anon_bytes = 100 * MIB + grown;
		if (cold <= 100 && grown >= 16 * MIB) {
			sample.gained_bytes = grown - 16 * MIB;
			sample.cold_bytes = sample.gained_bytes / 100 * cold;
			sample.cold_low_bytes = sample.cold_high_bytes = sample.cold_bytes;
		}
		event = memwatch_growth_feed(growth, &sample);
		r.alerts += !!(event & MEMWATCH_GROWTH_ALERT);
		r.notices += !!(event & MEMWATCH_GROWTH_NOTICE);
	}
	memwatch_growth_get_row(growth, 0, &r.row);
	memwatch_growth_unref(growth);
	return r;
}

int main(void)
{
	struct memwatch_ctx *ctx;
	struct result r;

	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	r = run_cache(ctx, 101);
	tap_eq(r.alerts, 1, "growth of days has an alert if nothing is known of what is used");
	tap_eq(r.row.reason, MEMWATCH_GROWTH_REASON_HEIGHT, "the alert is by the rule height");
	r = run_cache(ctx, 2);
	tap_eq(r.alerts, 0, "growth of days that is in use has no alert");
	tap_ok(r.notices >= 1, "growth of days that is in use has a notice");
	r = run_cache(ctx, 30);
	tap_eq(r.alerts, 1, "growth of days of which a third is not used has an alert");
	tap_eq(r.row.reason, MEMWATCH_GROWTH_REASON_HEIGHT,
	       "the alert about growth of which a third is not used is by the rule height");
	memwatch_ctx_unref(ctx);
	return tap_done();
}
