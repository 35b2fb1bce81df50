/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which processes get a state while there is not room for all. The library computes how
 * many states each user may have (the quota), and removes the least interesting states of
 * users who have more or whose processes wait. The program gives the free ones away.
 */
#ifndef _MW_GROWTH_OWNER_H
#define _MW_GROWTH_OWNER_H

#include "kernel.h"
#include "growth-maps.h"

/* The kernel allows 32 user namespaces inside each other. */
#define MW_GROWTH_NAMESPACES 33

static const struct mw_growth_owner new_owner = {};

/* The user that a process counts for, see &struct mw_growth_owner. */
static __always_inline __u32 mw_growth_owner_of(struct task_struct *task)
{
	const struct cred *cred = task->real_cred;
	struct user_namespace *ns = cred->user_ns;
	__u32 uid = cred->uid.val, i;

	for (i = 0; i < MW_GROWTH_NAMESPACES; i++) {
		if (!ns->level)
			break;
		uid = ns->owner.val;
		ns = ns->parent;
	}
	return uid;
}

/* Begins the numbers of a new round. */
static __always_inline void mw_growth_owner_begin(struct mw_growth_owner *owner, __u32 round)
{
	if (owner->round == round)
		return;
	owner->round = round;
	owner->before = owner->states;
	owner->states = 0;
	owner->exited = owner->exits_now;
	owner->exits_now = owner->exits;
	/* Nobody above the cursor waits: it is the turn of the smallest process id. */
	if (!owner->above)
		owner->cursor = 0;
	owner->refused = 0;
	owner->admitted = 0;
	owner->above = 0;
}

/* Returns 1 if a process without a state may have one; otherwise it is counted. */
static __always_inline int mw_growth_owner_admit(struct mw_growth_owner *owner, __u32 quota,
						 __u32 tgid)
{
	__u32 exited = owner->exits - owner->exited;

	if (quota == ~0U)
		return 1;
	/* Some exits may be counted twice; the size of the map is the limit in any case. */
	if (owner->before + owner->admitted < quota + exited && tgid > owner->cursor)
		return 1;
	owner->refused++;
	owner->above += tgid > owner->cursor;
	return 0;
}

#endif /* _MW_GROWTH_OWNER_H */
