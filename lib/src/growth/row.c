// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Converts the state of the detectors to the units of the public header.
 */
#include "growth/row.h"

#include "growth/interval.h"
#include "growth/pages.h"
#include "growth/past.h"
#include "base/timemath.h"

_Static_assert((int)MEMWATCH_GROWTH_LEAK == (int)MW_GROWTH_LEAK, "the verdicts are the same");
_Static_assert((int)MEMWATCH_GROWTH_REASON_LIMIT == (int)MW_GROWTH_LIMIT &&
		       (int)MEMWATCH_GROWTH_REASON_HEIGHT == (int)MW_GROWTH_HEIGHT &&
		       (int)MEMWATCH_GROWTH_REASON_UNTOUCHED == (int)MW_GROWTH_UNTOUCHED,
	       "the reasons are the same");
_Static_assert(MEMWATCH_GROWTH_ALERT == MW_GROWTH_EVENT_ALERT, "the events are the same");
_Static_assert(MEMWATCH_GROWTH_CLEAR == MW_GROWTH_EVENT_CLEAR, "the events are the same");
_Static_assert(MEMWATCH_GROWTH_NOTICE == MW_GROWTH_EVENT_NOTICE, "the events are the same");
_Static_assert(MEMWATCH_GROWTH_SETTLE == MW_GROWTH_EVENT_SETTLE, "the events are the same");
_Static_assert(MEMWATCH_GROWTH_TOUCH == MW_GROWTH_EVENT_TOUCH, "the events are the same");

void mw_growth_row_touch(struct memwatch_growth_row *row, const struct mw_growth *g,
			 const struct mw_growth_history *history,
			 const struct mw_growth_touch *touch)
{
	if (!touch->gained)
		return;
	row->gained_bytes = mw_bytes_from_pages(touch->gained);
	row->cold_bytes = mw_bytes_from_pages(touch->cold);
	row->cold_low_bytes = mw_bytes_from_pages(touch->cold_low);
	row->cold_high_bytes = mw_bytes_from_pages(touch->cold_high);
	row->untouched_ns = touch->untouched_s * MW_GROWTH_SECOND;
	if (!(g->flags & MW_GROWTH_F_NOTICE) || g->reason == MW_GROWTH_HEIGHT)
		return;
	row->since_ns = g->first_ns + g->base_s * MW_GROWTH_SECOND;
	row->growth_bytes = mw_bytes_from_pages(mw_past_growth(g, history, row->since_ns));
}

/* What the newest hour has more than the same hour of the day before, in pages. */
static __u32 day_gain(const struct mw_growth_days *days)
{
	struct mw_growth_gain gain = { 0 };

	mw_growth_gain_add(days, 1, 1, &gain);
	return gain.hours ? mw_growth_gain_mean(&gain) : days->pace;
}

void mw_growth_row_fill(struct memwatch_growth_row *row, const struct mw_growth *g,
			const struct mw_growth_history *history)
{
	const struct mw_growth_trend *trend = mw_growth_pick_trend(g, history);
	const struct mw_growth_point *origin = mw_growth_newest_origin(g, history);

	row->verdict = g->verdict;
	row->reason = g->reason;
	row->confidence = g->confidence;
	row->trend_score = g->score[MW_GROWTH_TREND];
	row->composition_score = g->score[MW_GROWTH_COMPOSITION];
	row->threshold_score = g->score[MW_GROWTH_THRESHOLD];
	row->flags = g->flags & MW_GROWTH_F_RESERVED ? MEMWATCH_GROWTH_F_RESERVED : 0;
	row->flags |= g->flags & MW_GROWTH_F_KNOWN ? MEMWATCH_GROWTH_F_KNOWN : 0;
	row->first_ns = g->first_ns;
	row->last_ns = g->last_ns;
	row->first_notice_ns = g->notice_ns ? g->notice_ns : MEMWATCH_GROWTH_NONE;
	row->first_alert_ns = g->alert_ns ? g->alert_ns : MEMWATCH_GROWTH_NONE;
	row->alert_slope = g->slope_bps;
	row->alert_eta_ns = g->eta_s == MW_GROWTH_NEVER ? MEMWATCH_GROWTH_NONE
							: g->eta_s * MW_GROWTH_SECOND;
	row->signal_bytes = mw_bytes_from_pages(g->signal);
	row->file_bytes = mw_bytes_from_pages(g->file);
	row->vsz_bytes = mw_bytes_from_pages(g->vsz);
	row->room_bytes = g->headroom == MW_GROWTH_NO_LIMIT ? MEMWATCH_GROWTH_NONE
							    : mw_bytes_from_pages(g->headroom);

	mw_growth_fill_eta(row, g, history);
	row->r2_permille = trend ? trend->r2_permille : history ? history->best.r2_permille : 0;
	if (history && g->reason == MW_GROWTH_HEIGHT) {
		row->growth_bytes = mw_bytes_from_pages(day_gain(&history->days));
		row->since_ns = mw_sub_sat(g->last_ns, MW_GROWTH_DAY_HOURS * MW_GROWTH_HOUR_NS);
	} else if (trend && trend->score >= MW_GROWTH_RELIABLE) {
		row->growth_bytes = mw_bytes_from_pages(trend->growth);
		row->since_ns = mw_sub_sat(
			g->last_ns,
			trend->window * (MW_GROWTH_BIN_NS << MW_GROWTH_SHIFT(trend->level)));
	} else {
		row->growth_bytes = mw_bytes_from_pages(mw_growth_sub_sat(g->top, origin->pages));
		row->since_ns = mw_growth_point_ns(g, origin);
	}
}
