/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The CPU time that the monitor takes: that of its calls, or all of the thread that makes them.
 * Each thread has a clock of its own, and the monitor may be handed from one to another.
 */
#ifndef MW_OWN_TIME_H
#define MW_OWN_TIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct mw_own_time - CPU time of the monitor
 * @whole_thread: what the thread does between two calls counts too
 * @thread: id of the thread that made the last call
 * @since_ns: time of its clock up to which it was counted
 * @total_ns: what was counted
 */
struct mw_own_time {
	bool whole_thread;
	pid_t thread;
	uint64_t since_ns;
	uint64_t total_ns;
};

/* Begins to count. */
void mw_own_time_init(struct mw_own_time *time, bool whole_thread);

/* Enclose a call. */
void mw_own_time_begin(struct mw_own_time *time);
void mw_own_time_end(struct mw_own_time *time);

/* What was counted, with the call that is going on, in nanoseconds. */
uint64_t mw_own_time_now(const struct mw_own_time *time);

/* Counts what the thread has done since its last call, if that is to be, and if this is it. */
void mw_own_time_update(struct mw_own_time *time);

/* Adds what the caller has taken, which is counted already if its whole thread is. */
void mw_own_time_add(struct mw_own_time *time, uint64_t ns);

#endif /* MW_OWN_TIME_H */
