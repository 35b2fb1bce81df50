/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The locks that more than one file takes. docs/design-kmod.md says which data
 * each of them guards.
 *
 * Order: mw_control_lock, cpus_read_lock(), the run queue lock, mw_lock.
 */
#ifndef _MW_LOCK_H
#define _MW_LOCK_H

#include <linux/mutex.h>
#include <linux/spinlock.h>

/*
 * Guards the sessions, the configuration, and arming and disarming. It may be
 * held for a long time: arming scans all processes.
 */
extern struct mutex mw_control_lock;

/*
 * Guards everything that changes when processes come and go: the tables of
 * processes and threads, the RMID pool, the owners, the waiting processes, the
 * object caches, the filters and the kicks. The switch hook takes it inside the
 * run queue lock, so nothing may wake a task, print or allocate while holding it.
 */
extern raw_spinlock_t mw_lock;

#endif /* _MW_LOCK_H */
