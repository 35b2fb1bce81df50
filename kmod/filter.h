/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Filters: which processes are measured.
 */
#ifndef _MW_FILTER_H
#define _MW_FILTER_H

#include <linux/memwatch.h>
#include <linux/types.h>

/**
 * struct mw_filters - a list of filters
 * @nr: number of entries in @filter
 * @filter: in the order in which they were added
 */
struct mw_filters {
	u32 nr;
	struct memwatch_filter filter[MEMWATCH_FILTERS_MAX];
};

int mw_filter_add(struct mw_filters *to, const struct memwatch_filter *filter);

/* The list that is in force. */
void mw_filter_apply(const struct mw_filters *list);
bool mw_filter_match(u64 cgroup_id, u32 uid, const char *comm);
u32 mw_filter_count(void);

#endif /* _MW_FILTER_H */
