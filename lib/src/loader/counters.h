/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The hardware counters that the programs of the relay read: a perf event for each counter and
 * CPU, in a map of the name of the counter.
 *
 * An event stops working when its CPU goes offline, or when the machine sleeps. A program that has
 * not seen that its counter is gone would take the difference of the old event and a new one. So
 * the counters of a CPU are closed at once, and opened again only after a program has failed to
 * read them: then it takes a new baseline.
 */
#ifndef MW_LOADER_COUNTERS_H
#define MW_LOADER_COUNTERS_H

#include <stdint.h>

#include <memwatch/ctx.h>
#include <memwatch/stream.h>

#include "loader/programs.h"

struct mw_bpf_counters;

/*
 * For @programs, which may be loaded later, and CPUs numbered below @nr_cpus. Returns 0 or
 * -ENOMEM.
 */
int mw_bpf_counters_new(struct memwatch_ctx *ctx, const struct mw_bpf_programs *programs,
			unsigned int nr_cpus, struct mw_bpf_counters **ret);
/* Accepts NULL. */
void mw_bpf_counters_free(struct mw_bpf_counters *counters);

/*
 * Before the programs are loaded: finds the counters that exist on any of the CPUs for which
 * @online is set. Returns a mask; the programs read only these.
 */
uint32_t mw_bpf_counters_probe(struct mw_bpf_counters *counters, const uint8_t *online);

/* Opens the counters of a CPU that no program reads yet. */
void mw_bpf_counters_open(struct mw_bpf_counters *counters, unsigned int cpu);

/* Closes the counters of a CPU, if they are open. */
void mw_bpf_counters_close(struct mw_bpf_counters *counters, unsigned int cpu, uint64_t now_ns);

/*
 * Opens the counters of a CPU that is online, if they are closed and a program has seen that.
 * Returns when to call it again; MW_TIME_MAX if they are open.
 */
uint64_t mw_bpf_counters_reopen(struct mw_bpf_counters *counters, unsigned int cpu,
				uint64_t now_ns);

/* The availability of a counter; the reason lives as long as the counters. */
void mw_bpf_counters_available(const struct mw_bpf_counters *counters, unsigned int counter,
			       struct memwatch_availability *ret);

/* Why a perf event cannot be opened, from a negative errno. */
const char *mw_bpf_counters_reason(int err);

#endif /* MW_LOADER_COUNTERS_H */
