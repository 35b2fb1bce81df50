/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The search of <memwatch/where.h>, from samples of stacks to functions.
 */
#ifndef MW_WHERE_SEARCH_H
#define MW_WHERE_SEARCH_H

#include <stdint.h>

#include <memwatch/where.h>

#include "bpf/where.h"

/**
 * struct mw_where_samples - the samples of a process
 * @counts: how many there are of each kind, in this order
 * @list: the samples
 */
struct mw_where_samples {
	uint32_t counts[MW_WHERE_KINDS];
	struct mw_where_sample list[MW_WHERE_MAX];
};

/* Starts a search; the samples are needed during this call only, which may change them. */
int mw_where_search_new(struct memwatch_ctx *ctx, uint32_t pid, struct mw_where_samples *samples,
			struct memwatch_where **ret);

#endif /* MW_WHERE_SEARCH_H */
