/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The relay as the library sees it: the BPF programs, a counter of each kind
 * and a ring for each CPU that is online. Rings are handed to a merge as CPUs
 * come and taken from it as they go. Nothing here knows of sessions or of the
 * device; without mw_bpf_relay_attach() it works without the module.
 */
#ifndef MW_BPF_RELAY_H
#define MW_BPF_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include <memwatch/stream.h>

#include "merge/merge.h"

struct mw_bpf_relay;

/**
 * struct mw_bpf_relay_opts - options
 * @mode: &enum memwatch_stream_mode
 * @nr_rmids: RMIDs of the module
 * @ring_pages: pages of each ring, a power of two
 * @settle_ns: a CPU that came back gets its counters after so long: at least
 *	two ticks, so that the relay has seen that the old ones are gone
 */
struct mw_bpf_relay_opts {
	uint32_t mode;
	uint32_t nr_rmids;
	uint32_t ring_pages;
	uint64_t settle_ns;
};

/*
 * Loads the programs, opens counters and rings. @merge must outlive the relay.
 * Returns 0 or a negative errno, with the error text of @ctx set.
 */
int mw_bpf_relay_open(struct memwatch_ctx *ctx, const struct mw_bpf_relay_opts *opts,
		      struct mw_merge *merge, struct mw_bpf_relay **ret);

/* Unmaps the rings: the merge must not be asked for records any more. Accepts NULL. */
void mw_bpf_relay_close(struct mw_bpf_relay *relay);

/* Attaches all programs, or none. */
int mw_bpf_relay_attach(struct mw_bpf_relay *relay);

/* When it returns no program runs any more: the rings do not change. */
void mw_bpf_relay_detach(struct mw_bpf_relay *relay);

/* Looks which CPUs came and went; to be called now and then. */
void mw_bpf_relay_refresh(struct mw_bpf_relay *relay, uint64_t now_ns);

/* Waits until a ring is filled to its watermark or time is up: 1, 0, or -EINTR. */
int mw_bpf_relay_wait(struct mw_bpf_relay *relay, int timeout_ms);

/*
 * After the merge has delivered all that was in the rings: tells it of losses
 * that the kernel did not put there. Returns how many.
 */
uint64_t mw_bpf_relay_settle(struct mw_bpf_relay *relay);

/* Sums over all CPUs since the relay was loaded. */
int mw_bpf_relay_totals(struct mw_bpf_relay *relay, uint64_t *produced, uint64_t *dropped);

/* Produced by one CPU. */
int mw_bpf_relay_cpu_total(struct mw_bpf_relay *relay, unsigned int cpu, uint64_t *produced);

/* As memwatch_stream_failure(). */
int mw_bpf_relay_failure(struct mw_bpf_relay *relay, unsigned int index, const char **name,
			 __u64 *count);

/* Availability of a counter; the reason lives as long as the relay. */
void mw_bpf_relay_counter(const struct mw_bpf_relay *relay, unsigned int counter,
			  struct memwatch_availability *ret);

/* CPUs with a ring now. */
unsigned int mw_bpf_relay_cpus(const struct mw_bpf_relay *relay);

/* For tests: the descriptor of a program ("on_tick"), or -ENOENT. */
int mw_bpf_relay_program(struct mw_bpf_relay *relay, const char *name);

#endif /* MW_BPF_RELAY_H */
