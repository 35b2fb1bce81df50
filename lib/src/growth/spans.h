/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The notices and alerts of one process or of one class of a cgroup, each with its start
 * and its end.
 */
#ifndef MW_GROWTH_SPANS_H
#define MW_GROWTH_SPANS_H

#include <memwatch/growth.h>

/**
 * struct mw_spans - the list; zero is an empty one
 * @items: owned; in the order of their beginnings
 * @nr: their number
 * @max: how many fit
 * @alert_slope: at the newest alert, in bytes per second
 */
struct mw_spans {
	struct memwatch_growth_span *items;
	unsigned int nr, max;
	__u64 alert_slope;
};

/*
 * Ends and begins what @event, a set of MEMWATCH_GROWTH_*, says. @row is what is known at an alert.
 * Returns 0 or -ENOMEM.
 */
int mw_spans_note(struct memwatch_ctx *ctx, struct mw_spans *spans, unsigned int event, __u64 now,
		  const struct memwatch_growth_row *row);

/* As memwatch_growth_get_span(). */
int mw_spans_get(const struct mw_spans *spans, unsigned int index,
		 struct memwatch_growth_span *ret);

/* Sets what a row says about the first notice, and about the first and the newest alert. */
void mw_spans_fill_row(const struct mw_spans *spans, struct memwatch_growth_row *row);

void mw_spans_free(struct mw_spans *spans);

#endif /* MW_GROWTH_SPANS_H */
