// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which processes are measured. The list in force is a short array under mw_lock;
 * policy.c applies a change to the processes that exist.
 */
#include <linux/string.h>

#include "filter.h"
#include "lock.h"

static struct mw_filters in_force;

static bool filter_matches_one(const struct memwatch_filter *f, u64 cgroup_id, u32 uid,
			       const char *comm)
{
	switch (f->kind) {
	case MEMWATCH_FILTER_CGROUP:
		return f->value == cgroup_id;
	case MEMWATCH_FILTER_UID:
		return f->value == uid;
	default:
		return !strncmp(f->comm, comm, MEMWATCH_COMM_LEN);
	}
}

/*
 * Filters of one kind are alternatives; each kind that has a filter must match.
 * Caller holds mw_lock.
 */
bool mw_filter_match(u64 cgroup_id, u32 uid, const char *comm)
{
	u32 asked = 0, met = 0, i;

	lockdep_assert_held(&mw_lock);
	for (i = 0; i < in_force.nr; i++) {
		const struct memwatch_filter *f = &in_force.filter[i];

		asked |= 1U << f->kind;
		if (filter_matches_one(f, cgroup_id, uid, comm))
			met |= 1U << f->kind;
	}
	return asked == met;
}

u32 mw_filter_count(void)
{
	return READ_ONCE(in_force.nr);
}

static bool filter_is_same(const struct memwatch_filter *a, const struct memwatch_filter *b)
{
	return a->kind == b->kind && a->value == b->value &&
	       !strncmp(a->comm, b->comm, MEMWATCH_COMM_LEN);
}

/* Returns 0; -EEXIST, the list has this filter; -ENOSPC, the list is full. */
int mw_filter_add(struct mw_filters *to, const struct memwatch_filter *filter)
{
	u32 i;

	for (i = 0; i < to->nr; i++)
		if (filter_is_same(&to->filter[i], filter))
			return -EEXIST;
	if (to->nr == MEMWATCH_FILTERS_MAX)
		return -ENOSPC;
	to->filter[to->nr++] = *filter;
	return 0;
}

/* Put @list in force for processes that are matched from now on. */
void mw_filter_apply(const struct mw_filters *list)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&mw_lock, flags);
	memcpy(in_force.filter, list->filter, list->nr * sizeof(list->filter[0]));
	WRITE_ONCE(in_force.nr, list->nr);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
}
