/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Whether work is proportional to its input. Time is CPU time of this process, so it hardly
 * depends on what else the machine does. The time for N records is compared with that for 4 N
 * records: it is 4 times as long if it is proportional, and 16 times if it is quadratic.
 */
#ifndef COST_KIT_H
#define COST_KIT_H

#include <stdint.h>
#include <sys/resource.h>

#include "../../selftests/tap.h"

#define COST_TIMES     4
#define COST_TIMES_MAX 10.0

static inline double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Runs @work with @n and with COST_TIMES times @n records. */
static inline void expect_proportional(void (*work)(uint32_t), uint32_t n, const char *what)
{
	double times[2];

	for (int i = 0; i < 2; i++) {
		double begin = cpu_seconds();

		work(i ? n * COST_TIMES : n);
		times[i] = cpu_seconds() - begin;
	}
	/* The resolution of CPU time is a few milliseconds. */
	tap_ok(times[1] < COST_TIMES_MAX * (times[0] + 0.02),
	       "%s: %.0f ms, %d times as many %.0f ms", what, times[0] * 1e3, COST_TIMES,
	       times[1] * 1e3);
}

/* The word with which @odd gives 1, modulo 2^64: to choose keys that a multiplication maps. */
static inline uint64_t cost_inverse(uint64_t odd)
{
	uint64_t x = odd;

	for (int i = 0; i < 6; i++)
		x *= 2 - odd * x;
	return x;
}

#endif /* COST_KIT_H */
