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

/* Makes the page. Returns 0 or a negative errno. */
int mw_fork_begin(void);

/* True once the profile of this process is its own. */
bool mw_fork_is_settled(void);

/*
 * True in a child that has not dealt with it, to one of its threads: that one makes the child
 * independent of its parent, and calls mw_fork_settle() then.
 */
bool mw_fork_claim(void);
void mw_fork_settle(void);

#endif
