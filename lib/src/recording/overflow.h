/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Records that were not taken because a queue was full, and the records of loss that say so
 * in their place: for each CPU, how many, and the interval in which its measurements are
 * incomplete.
 */
#ifndef MW_OVERFLOW_H
#define MW_OVERFLOW_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/memwatch.h>

/* A CPU: @count records were dropped, and what it measured in the interval is incomplete. */
struct mw_overflow_cpu {
	uint64_t begin_ns;
	uint64_t end_ns;
	uint64_t count;
};

/**
 * struct mw_overflow - the losses; a zeroed structure is valid
 * @cpus: by CPU
 * @nr_cpus: length of @cpus
 * @dropped: number of dropped records for which there is no record of loss yet
 * @total: number of all dropped records
 */
struct mw_overflow {
	struct mw_overflow_cpu *cpus;
	uint32_t nr_cpus;
	uint64_t dropped;
	uint64_t total;
};

void mw_overflow_uninit(struct mw_overflow *overflow);

/* Counts a record that was dropped. Returns 0 or -ENOMEM. */
int mw_overflow_drop(struct mw_overflow *overflow, const struct memwatch_record_header *record);

/*
 * Makes the record of loss of the first CPU from @cpu on that has dropped records; it is LATE if
 * it begins before @last_ns. Returns the number of the CPU, or -1 if there is none.
 */
int mw_overflow_lost(const struct mw_overflow *overflow, uint32_t cpu, uint64_t last_ns,
		     struct memwatch_record_lost *ret);

/* The record of loss of this CPU was taken. */
void mw_overflow_reported(struct mw_overflow *overflow, uint32_t cpu);

#endif /* MW_OVERFLOW_H */
