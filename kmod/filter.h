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

bool mw_filter_match(u64 cgroup_id, u32 uid, const char *comm);
u32 mw_filter_count(void);

int mw_filter_add(const struct memwatch_filter *filter);
int mw_filter_get(u32 index, struct memwatch_filter *filter);
void mw_filter_clear(void);

#endif /* _MW_FILTER_H */
