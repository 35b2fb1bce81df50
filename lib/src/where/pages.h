/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which of the pages that a process has touched are still there.
 */
#ifndef MW_WHERE_PAGES_H
#define MW_WHERE_PAGES_H

#include <stdint.h>

#include <memwatch/ctx.h>

#include "bpf/where.h"

/*
 * Sets the weight of samples to 0 whose page was given back, or is of a file that the process has
 * mapped. If that cannot be read, all samples stay.
 */
void mw_where_drop_gone(struct memwatch_ctx *ctx, uint32_t pid, struct mw_where_sample *list,
			uint32_t nr);

#endif /* MW_WHERE_PAGES_H */
