/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How a process finds out that it is a forked child.
 *
 * It is recognised by a page that the kernel clears in it (MADV_WIPEONFORK), when it comes into a
 * slow path for the first time. So it does not matter how it was forked, a child that only
 * calls exec() costs nothing, and no lock has to be taken around fork(). A child of vfork()
 * or clone(CLONE_VM) has the memory of its parent, sees the page unchanged, and its allocations are
 * its parent's, which is what they are.
 */
#ifndef _MW_HEAP_FORK_H
#define _MW_HEAP_FORK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "thread.h"

/* What the page says. In a child it reads as MW_FORK_FORKED. */
enum mw_fork_cookie {
	MW_FORK_FORKED = 0,
	MW_FORK_VALID = 1,
	MW_FORK_BUSY = 2, /* a thread is setting the child up */
};

struct mw_fork {
	uint32_t *page;
	pid_t pid; /* of the process that has the page; 0: the kernel clears the page in a child */
};

extern struct mw_fork mw_fork __attribute__((visibility("hidden")));

/* Makes the page. Returns 0 or a negative errno. */
int mw_fork_begin(void);

/* Clears the page if this is another process with memory of its own; for kernels that do not. */
void mw_fork_compare_pid(void);

static inline uint32_t mw_fork_read(void)
{
	if (mw_unlikely(mw_fork.pid))
		mw_fork_compare_pid();
	return __atomic_load_n(mw_fork.page, __ATOMIC_ACQUIRE);
}

/* True once the profile of this process is its own. */
static inline bool mw_fork_is_settled(void)
{
	return mw_fork_read() == MW_FORK_VALID;
}

/*
 * True in a child that has not dealt with it, to one of its threads: that one makes the child
 * independent of its parent, and calls mw_fork_settle() then.
 */
bool mw_fork_claim(void);
void mw_fork_settle(void);

#endif
