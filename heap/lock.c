/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The maintenance lock.
 */
#include <signal.h>
#include <stdint.h>

#include "lock.h"

static uint32_t maintenance;
static sigset_t maintenance_signals; /* that its holder had blocked before */

static void signals_block(sigset_t *ret_old)
{
	/* Raised by an instruction, which cannot wait; debuggers need them, too. */
	static const int synchronous[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP };
	sigset_t all;

	sigfillset(&all);
	for (unsigned int i = 0; i < sizeof(synchronous) / sizeof(synchronous[0]); i++)
		sigdelset(&all, synchronous[i]);
	pthread_sigmask(SIG_BLOCK, &all, ret_old);
}

bool mw_maintenance_try(void)
{
	sigset_t old;

	if (__atomic_load_n(&maintenance, __ATOMIC_RELAXED))
		return false;
	signals_block(&old);
	if (__atomic_exchange_n(&maintenance, 1, __ATOMIC_ACQUIRE)) {
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		return false;
	}
	maintenance_signals = old;
	return true;
}

void mw_maintenance_end(void)
{
	sigset_t old = maintenance_signals;

	__atomic_store_n(&maintenance, 0, __ATOMIC_RELEASE);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void mw_maintenance_inherit(void)
{
	sigset_t old;

	signals_block(&old);
	maintenance_signals = old;
	__atomic_store_n(&maintenance, 1, __ATOMIC_RELEASE);
}
