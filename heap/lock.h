/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Locks for what is rare. They are only ever tried: no thread waits for another one for ever.
 *
 * The holder has blocked the signals, so that no handler interrupts it: a handler may fork, and
 * the child would go on with work on a file that is its parent's; or call longjmp(), and leave
 * the lock behind. So would a thread that is cancelled: most functions that work on files are
 * cancellation points, and the program does not expect any in malloc().
 */
#ifndef _MW_HEAP_LOCK_H
#define _MW_HEAP_LOCK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* What may interrupt a thread. */
struct mw_interrupts {
	sigset_t signals; /* that are blocked */
	int cancellation; /* its state */
};

struct mw_lock {
	uint32_t taken;
	uint32_t hangs;		   /* a thread has given up waiting for this holder */
	struct mw_interrupts were; /* before its holder took it */
};

/*
 * Blocks all signals that are not raised by an instruction, and cancellation. Also for who calls a
 * cancellation point and holds no lock.
 */
void mw_interrupts_block(struct mw_interrupts *ret_were);
void mw_interrupts_restore(const struct mw_interrupts *were);

bool mw_lock_try(struct mw_lock *lock);
void mw_lock_end(struct mw_lock *lock);

/* Takes the lock in a forked child, where the holder, if there is one, is a thread of its parent.
 */
void mw_lock_inherit(struct mw_lock *lock);

/*
 * The maintenance lock serialises setting the profile up, adding memory and thinning samples.
 * Whoever does not get it tries again for a while, and then goes on without.
 */
extern struct mw_lock mw_maintenance __attribute__((visibility("hidden")));

/*
 * Lets the holder go on, and counts how often that was; from 0. Returns false if it has been long
 * enough, some 0.2 s: to allocate blocks takes a busy disk that long at most, and so does a holder
 * who waits for a processor, or for memory of a cgroup that is full. If the disk hangs, only those
 * wait who come first. The holder may have a lower priority, so the thread soon sleeps.
 */
bool mw_lock_wait(struct mw_lock *lock, unsigned int *waits);

#endif
