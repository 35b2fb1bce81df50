/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Locks for what is rare.
 */
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <time.h>

#include "lock.h"

#define WAITS_YIELDING 20
#define WAITS_SLEEPING 1200 /* 100 us, and half as much again until the thread runs */

struct mw_lock mw_maintenance __attribute__((visibility("hidden")));

void mw_interrupts_block(struct mw_interrupts *ret_were)
{
	/*
	 * Raised by an instruction, which cannot wait; debuggers need them, too. A sandbox answers
	 * system calls by SIGSYS, and the kernel kills the program if it is blocked.
	 */
	static const int synchronous[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS };
	sigset_t all;

	sigfillset(&all);
	for (unsigned int i = 0; i < sizeof(synchronous) / sizeof(synchronous[0]); i++)
		sigdelset(&all, synchronous[i]);
	pthread_sigmask(SIG_BLOCK, &all, &ret_were->signals);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &ret_were->cancellation);
}

void mw_interrupts_restore(const struct mw_interrupts *were)
{
	pthread_setcancelstate(were->cancellation, NULL);
	pthread_sigmask(SIG_SETMASK, &were->signals, NULL);
}

bool mw_lock_try(struct mw_lock *lock)
{
	struct mw_interrupts were;

	if (__atomic_load_n(&lock->taken, __ATOMIC_RELAXED))
		return false;
	mw_interrupts_block(&were);
	if (__atomic_exchange_n(&lock->taken, 1, __ATOMIC_ACQUIRE)) {
		mw_interrupts_restore(&were);
		return false;
	}
	lock->were = were;
	__atomic_store_n(&lock->hangs, 0, __ATOMIC_RELAXED);
	return true;
}

void mw_lock_end(struct mw_lock *lock)
{
	struct mw_interrupts were = lock->were;

	__atomic_store_n(&lock->taken, 0, __ATOMIC_RELEASE);
	mw_interrupts_restore(&were);
}

bool mw_lock_wait(struct mw_lock *lock, unsigned int *waits)
{
	const struct timespec pause = { .tv_nsec = 100000 };
	struct mw_interrupts were;

	if (*waits == WAITS_YIELDING + WAITS_SLEEPING)
		__atomic_store_n(&lock->hangs, 1, __ATOMIC_RELAXED);
	if (__atomic_load_n(&lock->hangs, __ATOMIC_RELAXED))
		return false;
	if (++*waits <= WAITS_YIELDING) {
		sched_yield();
		return true;
	}
	mw_interrupts_block(&were);
	nanosleep(&pause, NULL);
	mw_interrupts_restore(&were);
	return true;
}

void mw_lock_inherit(struct mw_lock *lock)
{
	mw_interrupts_block(&lock->were);
	__atomic_store_n(&lock->taken, 1, __ATOMIC_RELEASE);
}
