// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The list of notices and alerts, see spans.h.
 */
#include "growth/spans.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/context.h"

static int begin_span(struct memwatch_ctx *ctx, struct mw_spans *spans, unsigned int level,
		      __u64 now, const struct memwatch_growth_row *row)
{
	struct memwatch_growth_span span = {
		.sz = sizeof(span),
		.level = level,
		.reason = MEMWATCH_GROWTH_REASON_NONE,
		.start_ns = now,
		.end_ns = MEMWATCH_GROWTH_NONE,
		.eta_ns = MEMWATCH_GROWTH_NONE,
		.eta_low_ns = MEMWATCH_GROWTH_NONE,
		.eta_high_ns = MEMWATCH_GROWTH_NONE,
	};

	if (level == MEMWATCH_GROWTH_ALERT) {
		span.reason = row->reason;
		span.eta_ns = row->eta_ns;
		span.eta_low_ns = row->eta_low_ns;
		span.eta_high_ns = row->eta_high_ns;
		spans->alert_slope = row->alert_slope;
	}
	if (mw_array_reserve(spans->items, spans->max, spans->nr + 1U))
		return mw_fail_memory(ctx, "growth detectors");
	spans->items[spans->nr++] = span;
	return 0;
}

/* The last one of the level, of which there is one. */
static struct memwatch_growth_span *find_last(const struct mw_spans *spans, unsigned int level)
{
	unsigned int i = spans->nr;

	while (i-- > 0)
		if (spans->items[i].level == level)
			break;
	return &spans->items[i];
}

int mw_spans_note(struct memwatch_ctx *ctx, struct mw_spans *spans, unsigned int event, __u64 now,
		  const struct memwatch_growth_row *row)
{
	int err = 0;

	if (event & MEMWATCH_GROWTH_SETTLE)
		find_last(spans, MEMWATCH_GROWTH_NOTICE)->end_ns = now;
	if (event & MEMWATCH_GROWTH_CLEAR)
		find_last(spans, MEMWATCH_GROWTH_ALERT)->end_ns = now;
	if (event & MEMWATCH_GROWTH_NOTICE)
		err = begin_span(ctx, spans, MEMWATCH_GROWTH_NOTICE, now, row);
	if (!err && event & MEMWATCH_GROWTH_ALERT)
		err = begin_span(ctx, spans, MEMWATCH_GROWTH_ALERT, now, row);
	return err;
}

int mw_spans_get(const struct mw_spans *spans, unsigned int index, struct memwatch_growth_span *ret)
{
	int err;

	if (index >= spans->nr)
		return 0;
	err = mw_opts_export(ret, &spans->items[index], sizeof(spans->items[index]));
	return err ? err : 1;
}

/* The first one of the level, or NULL. */
static const struct memwatch_growth_span *find_first(const struct mw_spans *spans,
						     unsigned int level)
{
	for (unsigned int i = 0; i < spans->nr; i++)
		if (spans->items[i].level == level)
			return &spans->items[i];
	return NULL;
}

void mw_spans_fill_row(const struct mw_spans *spans, struct memwatch_growth_row *row)
{
	const struct memwatch_growth_span *notice = find_first(spans, MEMWATCH_GROWTH_NOTICE);
	const struct memwatch_growth_span *alert = find_first(spans, MEMWATCH_GROWTH_ALERT);

	row->first_notice_ns = notice ? notice->start_ns : MEMWATCH_GROWTH_NONE;
	row->first_alert_ns = alert ? alert->start_ns : MEMWATCH_GROWTH_NONE;
	row->alert_eta_ns = alert ? find_last(spans, MEMWATCH_GROWTH_ALERT)->eta_ns
				  : MEMWATCH_GROWTH_NONE;
	/* That of the alert that was told. The detectors may have found another one since. */
	if (alert)
		row->alert_slope = spans->alert_slope;
}

void mw_spans_free(struct mw_spans *spans)
{
	free(spans->items);
	*spans = (struct mw_spans){ 0 };
}
