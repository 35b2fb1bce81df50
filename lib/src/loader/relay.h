/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The relay from the side of the library: the BPF programs, and the hardware counters
 * and the ring of each CPU that is online. The rings are added to a merge. The relay
 * does not know about sessions or the device; only mw_bpf_relay_attach() needs the
 * module, if the programs are those that need it.
 */
#ifndef MW_LOADER_RELAY_H
#define MW_LOADER_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include <memwatch/stream.h>

#include "loader/programs.h"
#include "merge/merge.h"

struct mw_bpf_relay;

/*
 * The rings are read at least once in so many ticks: the programs keep the batches of a CPU that
 * comes online for twice as many, until a round has opened its ring.
 */
#define MW_BPF_RELAY_TICKS 64

/**
 * struct mw_bpf_relay_opts - options
 * @source: which programs
 * @mode: &enum memwatch_stream_mode
 * @nr_rmids: MODULE: number of RMIDs of the module
 * @period_ns: SCHEDULER: the period
 * @ring_pages: pages of each ring, a power of two
 */
struct mw_bpf_relay_opts {
	enum mw_bpf_source source;
	uint32_t mode;
	uint32_t nr_rmids;
	uint64_t period_ns;
	uint32_t ring_pages;
};

/*
 * Loads the programs and opens counters and rings. @merge must outlive the relay.
 * Returns 0 or a negative errno, with the error text of @ctx set.
 */
int mw_bpf_relay_open(struct memwatch_ctx *ctx, const struct mw_bpf_relay_opts *opts,
		      struct mw_merge *merge, struct mw_bpf_relay **ret);

/* Unmaps the rings: do not read records from the merge afterwards. Accepts NULL. */
void mw_bpf_relay_close(struct mw_bpf_relay *relay);

/*
 * SCHEDULER: each CPU sends what it has measured, and stops. Waits for that, but not for a CPU
 * that does not answer.
 */
void mw_bpf_relay_stop(struct mw_bpf_relay *relay);

/* Attaches all programs, or none. */
int mw_bpf_relay_attach(struct mw_bpf_relay *relay);

/* On return no program is running any more, so the rings do not change. */
void mw_bpf_relay_detach(struct mw_bpf_relay *relay);

/*
 * Opens rings and counters for CPUs that came online. Call it as often as the rings are read: it
 * costs nothing if there is no such CPU.
 */
void mw_bpf_relay_refresh(struct mw_bpf_relay *relay, uint64_t now_ns);

/* Waits until a ring is a quarter full or @timeout_ms has passed: 1, 0, or -EINTR. */
int mw_bpf_relay_wait(struct mw_bpf_relay *relay, int timeout_ms);

/* The descriptor of the rings, see mw_bpf_rings_fd(). */
int mw_bpf_relay_fd(const struct mw_bpf_relay *relay);

/*
 * Call this after the merge has delivered everything in the rings: reports to the merge
 * the losses that the kernel did not report. Returns how many records that were.
 */
uint64_t mw_bpf_relay_settle(struct mw_bpf_relay *relay);

/* Records sent and dropped on all CPUs since the relay was loaded. 0 or a negative errno. */
int mw_bpf_relay_totals(struct mw_bpf_relay *relay, uint64_t *produced, uint64_t *dropped);

/* Records sent on one CPU, dropped ones included. 0 or a negative errno. */
int mw_bpf_relay_cpu_total(struct mw_bpf_relay *relay, unsigned int cpu, uint64_t *produced);

/* As memwatch_stream_get_failure(). */
int mw_bpf_relay_failure(struct mw_bpf_relay *relay, unsigned int index, const char **name,
			 __u64 *count);

/* Availability of a counter; the reason lives as long as the relay. */
void mw_bpf_relay_counter(const struct mw_bpf_relay *relay, unsigned int counter,
			  struct memwatch_availability *ret);

/* Number of CPUs that have had a ring. */
unsigned int mw_bpf_relay_cpus(const struct mw_bpf_relay *relay);

/* For tests: the descriptor of a program ("on_tick"), or -ENOENT. */
int mw_bpf_relay_program(struct mw_bpf_relay *relay, const char *name);

#endif /* MW_LOADER_RELAY_H */
