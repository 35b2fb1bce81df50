/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Why there are no access samples here, in words for users.
 */
#ifndef MW_STALE_ACCESS_WHY_H
#define MW_STALE_ACCESS_WHY_H

#include <stdbool.h>

#include <memwatch/ctx.h>

#include "stale/access-find.h"

/* Why sysfs has no PMU of the processor; a constant. */
const char *mw_access_why_no_pmu(struct memwatch_ctx *ctx);

/* Why the PMU of the processor has no event for memory accesses; a constant. */
const char *mw_access_why_no_event(struct memwatch_ctx *ctx);

/*
 * Sets the error text for @err, a negative errno of perf_event_open() for @event. @user: the event
 * left the kernel out. Returns the errno for callers: -EACCES for what is not permitted,
 * -EOPNOTSUPP for what this machine does not have, or @err.
 */
int mw_access_fail_open(struct memwatch_ctx *ctx, const struct mw_access_event *event, bool user,
			int err);

#endif /* MW_STALE_ACCESS_WHY_H */
