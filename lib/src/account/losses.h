/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * When records of which CPU were lost: sets of intervals that do not overlap. What was measured
 * in such an interval is a lower bound.
 */
#ifndef MW_LOSSES_H
#define MW_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#include <memwatch/slots.h>

/**
 * struct mw_loss - an interval in which records of a CPU, or of any CPU, were lost
 * @cpu: the CPU
 * @begin_ns: first nanosecond
 * @end_ns: first nanosecond after it
 * @sampled: samples of the CPU up to the end have come; those that begin in the interval are
 *	among them
 */
struct mw_loss {
	uint32_t cpu;
	uint64_t begin_ns;
	uint64_t end_ns;
	bool sampled;
};

/**
 * struct mw_loss_set - intervals, sorted by CPU and begin; those of one CPU do not overlap
 * @entries: the intervals
 * @count: how many there are
 * @capacity: how many fit
 */
struct mw_loss_set {
	struct mw_loss *entries;
	uint32_t count;
	uint32_t capacity;
};

/**
 * struct mw_losses - the losses
 * @any: as if all CPUs were one
 * @by_cpu: each CPU on its own; MEMWATCH_CPU_ANY means that the CPUs are not known
 */
struct mw_losses {
	struct mw_loss_set any;
	struct mw_loss_set by_cpu;
};

void mw_losses_uninit(struct mw_losses *losses);

/*
 * Adds a loss. There is a limit on the number of intervals; beyond it, neighbours are joined, so
 * that more time counts as lost. Returns 0 or -ENOMEM.
 */
int mw_losses_add(struct mw_losses *losses, const struct memwatch_loss *loss);

/*
 * Whether records of @cpu, or of any CPU if it is MEMWATCH_CPU_ANY, were lost between @begin_ns
 * and @end_ns.
 */
bool mw_losses_touch(const struct mw_losses *losses, uint32_t cpu, uint64_t begin_ns,
		     uint64_t end_ns);

/*
 * A sample of @cpu has come that is from @begin_ns to @end_ns. Returns whether it overlaps a loss
 * of its CPU. Samples for which there was no room go on until there is, also beyond the end of the
 * loss: to each part of its interval such a sample may bring what was measured in another one.
 */
bool mw_losses_take_sample(struct mw_losses *losses, uint32_t cpu, uint64_t begin_ns,
			   uint64_t end_ns);

/*
 * Forgets the losses that ended before a time, but those of a CPU only after its next sample, which
 * may come much later if the CPU is idle.
 */
void mw_losses_forget(struct mw_losses *losses, uint64_t time_ns);

#endif /* MW_LOSSES_H */
