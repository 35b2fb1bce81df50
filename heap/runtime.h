/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the library does in this process: whether it samples, at which rate, and what happens
 * after a fork.
 */
#ifndef _MW_HEAP_RUNTIME_H
#define _MW_HEAP_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"

struct mw_thread;

enum mw_runtime_mode {
	MW_RUNTIME_NEW = 0, /* nothing has been set up yet */
	MW_RUNTIME_OFF = 1, /* for good: no file, setuid, or a forked child that stops */
	MW_RUNTIME_ON = 2,  /* there is a profile; header.state says more */
};

struct mw_runtime {
	uint32_t instance; /* changes in each process that continues from a fork; never 0 */
	uint32_t mode;	   /* enum mw_runtime_mode */
	uint64_t rate;	   /* for new countdowns; 0: dormant or stopped */
	uint32_t threads;  /* numbers handed out by mw_runtime_thread_number() */
};

extern struct mw_runtime mw_runtime __attribute__((visibility("hidden")));

/*
 * Called at the beginning of each slow path, by a thread that is marked as busy: sets the
 * library up when called first, notices that the process is a forked child, and follows the
 * control word. Draws the thread's countdown anew if it belongs to a rate of before.
 * Returns true if @thread is being sampled.
 */
bool mw_runtime_follow(struct mw_thread *thread);

/* True if frees of samples are tracked here; false in a forked child that has no profile yet. */
bool mw_runtime_owns_samples(void);

/* A new countdown for @thread. */
void mw_runtime_draw(struct mw_thread *thread);

/* Doubles the rate, at most once for all threads that saw @rate. */
void mw_runtime_raise(uint64_t rate);

/* 1, 2, 3, ...: makes the random numbers of threads different under a fixed seed. */
uint64_t mw_runtime_thread_number(void);

uint64_t mw_runtime_now(void);

#endif
