/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The BPF programs that make records: those of the relay, which need the tracepoints of the
 * module, or those that measure without it. Both have the same maps, so nothing but loading
 * depends on which they are.
 */
#ifndef MW_LOADER_PROGRAMS_H
#define MW_LOADER_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include <memwatch/ctx.h>

struct bpf_map;
struct bpf_object;

/* Where records come from. */
enum mw_bpf_source {
	MW_BPF_SOURCE_MODULE = 0,
	MW_BPF_SOURCE_SCHEDULER = 1,
};

/**
 * struct mw_bpf_programs_opts - options
 * @source: which programs
 * @mode: &enum memwatch_stream_mode
 * @counters: bit N: &enum memwatch_counter N is available
 * @nr_rmids: MODULE: number of RMIDs of the module
 * @cpus: number of possible CPUs
 * @period_ns: SCHEDULER: the period of the ticks
 */
struct mw_bpf_programs_opts {
	enum mw_bpf_source source;
	uint32_t mode;
	uint32_t counters;
	uint32_t nr_rmids;
	uint32_t cpus;
	uint64_t period_ns;
};

/**
 * struct mw_bpf_programs - programs that are loaded
 * @skeleton: as bpftool has generated it
 * @destroy: frees it
 * @obj: the programs, in the order in which they are attached
 * @records: map: the rings
 * @failures: map: counts of failures
 * @current: map: struct mw_relay_cpu
 * @missing_rings: counter of calls that found no ring
 * @stopping: SCHEDULER: set it, and each CPU stops at its next tick; otherwise NULL
 */
struct mw_bpf_programs {
	void *skeleton;
	void (*destroy)(void *skeleton);
	struct bpf_object *obj;
	struct bpf_map *records;
	struct bpf_map *failures;
	struct bpf_map *current;
	const volatile uint64_t *missing_rings;
	volatile uint32_t *stopping;
};

/* Returns 0 or a negative errno, with the error text of @ctx set. @programs is zeroed before. */
int mw_bpf_programs_load(struct memwatch_ctx *ctx, const struct mw_bpf_programs_opts *opts,
			 struct mw_bpf_programs *programs);

/* Accepts what is zeroed. */
void mw_bpf_programs_unload(struct mw_bpf_programs *programs);

#endif /* MW_LOADER_PROGRAMS_H */
