// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which processes are measured. The filters are a short array under mw_lock;
 * policy.c applies a change to the processes that exist.
 */
#include <linux/string.h>

#include "filter.h"
#include "lock.h"

static struct memwatch_filter filters[MEMWATCH_FILTERS_MAX];
static u32 nr_filters;

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
	for (i = 0; i < nr_filters; i++) {
		asked |= 1U << filters[i].kind;
		if (filter_matches_one(&filters[i], cgroup_id, uid, comm))
			met |= 1U << filters[i].kind;
	}
	return asked == met;
}

u32 mw_filter_count(void)
{
	return READ_ONCE(nr_filters);
}

static bool filter_is_same(const struct memwatch_filter *a, const struct memwatch_filter *b)
{
	return a->kind == b->kind && a->value == b->value &&
	       !strncmp(a->comm, b->comm, MEMWATCH_COMM_LEN);
}

int mw_filter_add(const struct memwatch_filter *filter)
{
	unsigned long flags;
	int err = 0;
	u32 i;

	raw_spin_lock_irqsave(&mw_lock, flags);
	for (i = 0; i < nr_filters && !err; i++)
		if (filter_is_same(&filters[i], filter))
			err = -EEXIST;
	if (!err && nr_filters == MEMWATCH_FILTERS_MAX)
		err = -ENOSPC;
	if (!err) {
		filters[nr_filters] = *filter;
		WRITE_ONCE(nr_filters, nr_filters + 1);
	}
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	return err;
}

int mw_filter_get(u32 index, struct memwatch_filter *filter)
{
	unsigned long flags;
	int err = -ENOENT;

	raw_spin_lock_irqsave(&mw_lock, flags);
	if (index < nr_filters) {
		filter->kind = filters[index].kind;
		filter->value = filters[index].value;
		memcpy(filter->comm, filters[index].comm, MEMWATCH_COMM_LEN);
		err = 0;
	}
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	return err;
}

void mw_filter_clear(void)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&mw_lock, flags);
	WRITE_ONCE(nr_filters, 0);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
}
