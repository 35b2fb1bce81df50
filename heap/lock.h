/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The maintenance lock: it serialises what is rare, setting the profile up, adding memory and
 * thinning samples. It is only ever tried. Whoever does not get it tries again for a while and then
 * goes on without: no thread waits for another one for ever.
 *
 * Its holder has blocked the signals, so that no handler interrupts it: a handler may fork, and
 * the child would go on with the maintenance of a file that is its parent's; or call longjmp(),
 * and leave the lock behind.
 */
#ifndef _MW_HEAP_LOCK_H
#define _MW_HEAP_LOCK_H

#include <stdbool.h>

/* How often it is tried, with sched_yield() in between. */
#define MW_MAINTENANCE_WAITS 100

bool mw_maintenance_try(void);
void mw_maintenance_end(void);

/* The same in a forked child, where the holder, if there is one, is a thread of its parent. */
void mw_maintenance_inherit(void);

#endif
