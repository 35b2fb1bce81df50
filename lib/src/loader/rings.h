/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The rings behind a PERF_EVENT_ARRAY: one for each CPU that has been online,
 * handed to a merge. What is sent, and what a reader makes of it, is not known here.
 *
 * A perf event belongs to a CPU and dies with it: when the CPU goes offline the
 * event stays behind, silent, and does not live again when the CPU is back. The
 * ring survives: mw_bpf_rings_refresh() makes a new event that writes into the
 * old one's. What programs send in between is dropped, and counted by them.
 */
#ifndef MW_BPF_RINGS_H
#define MW_BPF_RINGS_H

#include <stdint.h>

#include <memwatch/ctx.h>

#include "merge/merge.h"

struct mw_bpf_rings;

/**
 * struct mw_bpf_rings_opts - options
 * @map: descriptor of the PERF_EVENT_ARRAY
 * @counts: descriptor of a per-CPU array of 64-bit numbers
 * @no_ring: the key there under which the programs count records that found no
 *	ring (-ENOENT, -EOPNOTSUPP)
 * @pages: of each ring, a power of two
 * @wakeup_bytes: the reader is woken up when so much is there; 0: by each record
 */
struct mw_bpf_rings_opts {
	int map;
	int counts;
	uint32_t no_ring;
	uint32_t pages;
	uint32_t wakeup_bytes;
};

/*
 * Opens a ring for each CPU that is online. @merge must outlive the rings, and
 * not be asked for records once they are closed. Returns 0 or a negative errno,
 * with the error text of @ctx set.
 */
int mw_bpf_rings_open(struct memwatch_ctx *ctx, const struct mw_bpf_rings_opts *opts,
		      struct mw_merge *merge, struct mw_bpf_rings **ret);

/* Accepts NULL. */
void mw_bpf_rings_close(struct mw_bpf_rings *rings);

/*
 * Looks which CPUs came and went; to be called now and then. Records that found no
 * ring are told to the merge as lost, between what was sent before and after.
 */
void mw_bpf_rings_refresh(struct mw_bpf_rings *rings);

/* Waits until a ring has enough or time is up: 1, 0, or -EINTR. */
int mw_bpf_rings_wait(struct mw_bpf_rings *rings, int timeout_ms);

/* 0: @cpu has no ring now; else a number that is another one after each death. */
uint32_t mw_bpf_rings_life(const struct mw_bpf_rings *rings, unsigned int cpu);

/* Index in the merge, or -ENOENT: @cpu has never had a ring. */
int mw_bpf_rings_index(const struct mw_bpf_rings *rings, unsigned int cpu);

/* CPUs that have had a ring. */
unsigned int mw_bpf_rings_count(const struct mw_bpf_rings *rings);

/* One byte for each of @nr CPUs: is it online? 0 or a negative errno. */
int mw_cpus_online(struct memwatch_ctx *ctx, uint8_t *online, unsigned int nr);

#endif /* MW_BPF_RINGS_H */
