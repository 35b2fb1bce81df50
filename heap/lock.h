/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The maintenance lock: it serialises what is rare, adding memory and thinning samples. It is
 * only ever tried. Whoever does not get it tries again for a while, because the holder may have
 * been interrupted, and then goes on without: no thread waits for another one for ever, and a
 * holder that longjmp() took away only ends the growth of the profile.
 */
#ifndef _MW_HEAP_LOCK_H
#define _MW_HEAP_LOCK_H

#include <stdbool.h>
#include <stdint.h>

/* How often it is tried, with sched_yield() in between. */
#define MW_MAINTENANCE_WAITS 100

extern uint32_t mw_maintenance __attribute__((visibility("hidden")));

static inline bool mw_maintenance_try(void)
{
	return !__atomic_exchange_n(&mw_maintenance, 1, __ATOMIC_ACQUIRE);
}

static inline void mw_maintenance_end(void)
{
	__atomic_store_n(&mw_maintenance, 0, __ATOMIC_RELEASE);
}

#endif
