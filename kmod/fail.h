/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What only tests need. Each step of loading and of starting a session can be made
 * to fail, so that a test can prove that the steps before it are undone; the window
 * between two steps can be made wide; and RDT can be assumed on a machine that has
 * none. Only a build with MEMWATCH_TEST=1 has this: whoever may load a module must
 * not be able to make it write registers of hardware that is not there.
 *
 * What a tick costs in an emulated machine depends on how busy its host is. So the
 * build for tests does not lengthen the period, unless its parameter says so.
 */
#ifndef _MW_FAIL_H
#define _MW_FAIL_H

#include <linux/types.h>

enum mw_fail_step {
	/* insmod */
	MW_FAIL_POOL = 1,
	MW_FAIL_POLICY_INIT,
	MW_FAIL_PROC,
	MW_FAIL_DEV,
	MW_FAIL_NETLINK,
	/* the first MEMWATCH_IOC_START */
	MW_FAIL_RDT,
	MW_FAIL_TABLES,
	MW_FAIL_CACHE_PROCESS,
	MW_FAIL_CACHE_THREAD,
	MW_FAIL_CACHE_USER,
	MW_FAIL_POLICY_ARM,
	MW_FAIL_HOOK_FIND,
	MW_FAIL_HOOK_SWITCH,
	MW_FAIL_HOOK_FORK,
	MW_FAIL_HOOK_EXEC,
	MW_FAIL_HOOK_RENAME,
	MW_FAIL_SCAN,
	MW_FAIL_CPU_FIRST,
	MW_FAIL_CPU_LAST,
	MW_FAIL_DOMAIN,
	MW_FAIL_STARTED,
	MW_FAIL_STEPS = MW_FAIL_STARTED,
	/* the last MEMWATCH_IOC_STOP, which tries again */
	MW_FAIL_UNHOOK,
};

#ifdef MW_TEST
#define MW_TICK_MAX_PERCENT 0
bool mw_fail(enum mw_fail_step step);
/* Sleeps. @what: who waits, for the log */
void mw_fail_delay(const char *what);
/* So many jiffies ago a process is believed to run when it runs. */
unsigned long mw_fail_idle(void);
/* The RMIDs of the RDT to be simulated; 0, look at the hardware. */
u32 mw_fail_assumed_rmids(void);
/* @storm sends as many notices as somebody writes to a parameter; NULL: nothing any more */
void mw_fail_on_storm(void (*storm)(u32 nr));
#else
#define MW_TICK_MAX_PERCENT 5
static inline bool mw_fail(enum mw_fail_step step)
{
	return false;
}

static inline void mw_fail_delay(const char *what)
{
}

static inline unsigned long mw_fail_idle(void)
{
	return 0;
}

static inline u32 mw_fail_assumed_rmids(void)
{
	return 0;
}

static inline void mw_fail_on_storm(void (*storm)(u32 nr))
{
}
#endif

#endif /* _MW_FAIL_H */
