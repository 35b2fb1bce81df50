/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The rings of a BPF_MAP_TYPE_PERF_EVENT_ARRAY: one for each CPU that has been online,
 * added to a merge. The content of the rings is not known here.
 *
 * A perf event belongs to a CPU. When the CPU goes offline, the event stops working and
 * does not work again when the CPU is back. The ring stays: mw_bpf_rings_refresh() opens
 * a new event that writes to the ring of the old one. What the BPF programs send
 * meanwhile they keep or drop, and count.
 */
#ifndef MW_LOADER_RINGS_H
#define MW_LOADER_RINGS_H

#include <stdint.h>

#include <memwatch/ctx.h>

#include "merge/merge.h"

struct mw_bpf_rings;

/**
 * struct mw_bpf_rings_opts - options
 * @map: descriptor of the BPF_MAP_TYPE_PERF_EVENT_ARRAY
 * @counts: descriptor of a per-CPU array of 64-bit numbers
 * @no_ring: key in @counts under which the programs count records that were dropped
 *	because the CPU had no ring (-ENOENT, -EOPNOTSUPP)
 * @held: key under which they count what they keep until the CPU has a ring; @no_ring if they
 *	keep nothing
 * @pages: pages of each ring, a power of two
 * @wakeup_bytes: wake up the reader when a ring holds so many unread bytes; 0: at each
 *	record
 */
struct mw_bpf_rings_opts {
	int map;
	int counts;
	uint32_t no_ring;
	uint32_t held;
	uint32_t pages;
	uint32_t wakeup_bytes;
};

/*
 * Opens a ring for each CPU that is online. @merge must outlive the rings; do not read
 * records from it after the rings are closed. Returns 0 or a negative errno, with the
 * error text of @ctx set.
 */
int mw_bpf_rings_open(struct memwatch_ctx *ctx, const struct mw_bpf_rings_opts *opts,
		      struct mw_merge *merge, struct mw_bpf_rings **ret);

/* Accepts NULL. */
void mw_bpf_rings_close(struct mw_bpf_rings *rings);

/*
 * Opens rings for CPUs that came online. Call it regularly. Records that were dropped
 * because their CPU had no ring are reported to the merge as lost, in their place
 * between the records sent before and after.
 */
void mw_bpf_rings_refresh(struct mw_bpf_rings *rings);

/* Waits until a ring holds @wakeup_bytes or @timeout_ms has passed: 1, 0, or -EINTR. */
int mw_bpf_rings_wait(struct mw_bpf_rings *rings, int timeout_ms);

/* A descriptor that becomes readable when mw_bpf_rings_wait() would return 1. */
int mw_bpf_rings_fd(const struct mw_bpf_rings *rings);

/*
 * The ring generation of @cpu: 0 if it has no working ring; otherwise a number that
 * changes each time a new event is opened for the ring.
 */
uint32_t mw_bpf_rings_generation(const struct mw_bpf_rings *rings, unsigned int cpu);

/* The index of @cpu in the merge, or -ENOENT if it has never been online. */
int mw_bpf_rings_index(const struct mw_bpf_rings *rings, unsigned int cpu);

/* Number of CPUs that have had a ring. */
unsigned int mw_bpf_rings_count(const struct mw_bpf_rings *rings);

#endif /* MW_LOADER_RINGS_H */
