/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Growth of a known form, fed to the detectors.
 */
#ifndef _GROWTH_SHAPES_H
#define _GROWTH_SHAPES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <memwatch/growth.h>

#define MIB (1ULL << 20)

static struct memwatch_ctx *ctx;
/* Bytes of anonymous memory at a time in seconds. */
typedef double (*shape)(double t);

struct result {
	struct memwatch_growth_row row;
	unsigned int alerts, clears, notices, settles;
};

/* Feeds a process of shape @f to the detectors, a sample every @step seconds. */
static struct result run_shape(shape f, double seconds, double step, uint64_t limit)
{
	MEMWATCH_OPTS(memwatch_growth_sample, sample, .tgid = 7, .comm = "x");
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
		r.alerts += !!(event & MEMWATCH_GROWTH_ALERT);
		r.clears += !!(event & MEMWATCH_GROWTH_CLEAR);
		r.notices += !!(event & MEMWATCH_GROWTH_NOTICE);
		r.settles += !!(event & MEMWATCH_GROWTH_SETTLE);
	}
	memwatch_growth_get_row(growth, 0, &r.row);
	memwatch_growth_unref(growth);
	return r;
}

static bool is_near(double a, double b, double share)
{
	return fabs(a - b) <= share * b;
}

static double seconds_of(uint64_t ns)
{
	return (double)ns / 1e9;
}

/* The wave of every day. */
static double daily_wave(double t)
{
	return 300 * MIB + 100 * MIB * sin(t * 2 * M_PI / 86400);
}

#endif
