/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth detectors: samples of the memory of a process go in, a verdict and alerts
 * come out. docs/growth.md explains the algorithm and defines its terms.
 *
 * The BPF programs and the library compile these same headers. They compute with
 * integers only, call no helper and use no type of the kernel, so a trace that is
 * replayed gets the verdicts, bit for bit, that the kernel would have given, but for what that
 * knew of programs from before the trace.
 *
 *   growth-units.h     pages, seconds, and the values that mean "none"
 *   growth-state.h     a sample, and the state of every process
 *   growth-episode.h   growth within seconds
 *   growth-spurt.h     growth that becomes faster
 *   growth-days.h      means of the signal over days
 *   growth-pace.h      what a day adds
 *   growth-history.h   minima of the signal over hours, for a process that has grown
 *   growth-trend.h     lines through the history
 *   growth-forecast.h  the time to the limit
 *   growth-notice.h    when to give notice
 *   growth-rules.h     when to alert
 *   growth-verdict.h   alerts, verdict, confidence
 *   growth-program.h   what a program did when it ran before
 */
#ifndef _MW_GROWTH_H
#define _MW_GROWTH_H

#include "growth-program.h"
#include "growth-verdict.h"

/* Begins the state of a process at its first sample, or at the first after an exec. */
MW_INLINE void mw_growth_init(struct mw_growth *g, __u64 now, __u32 signal)
{
	g->first_ns = g->last_ns = now;
	g->alert_ns = g->slope_bps = 0;
	g->notice_ns = 0;
	g->base_s = g->rise_s = 0;
	g->signal = g->floor = g->base = signal;
	g->top = g->ceiling = g->rise = g->jump = 0;
	g->file = g->vsz = g->vsz_floor = 0;
	g->headroom = MW_GROWTH_NO_LIMIT;
	g->alert_from = g->alert_top = 0;
	g->alert_s = g->progress_s = 0;
	g->eta_s = MW_GROWTH_NEVER;
	g->flags = 0;
	g->reason = MW_GROWTH_NONE;
	g->verdict = MW_GROWTH_INSUFFICIENT;
	g->confidence = mw_growth_calibrated_confidence(0);
	g->score[0] = g->score[1] = g->score[2] = 0;
	g->reserved = 0;
	g->followed_min = 0;
	mw_growth_episode_start(g, signal, now);
}

/* Begins the history of a process, after the sample that set MW_GROWTH_F_HISTORY. */
MW_INLINE void mw_growth_history_init(struct mw_growth_history *history, const struct mw_growth *g)
{
	__u32 i, bin;

	history->start_ns = g->last_ns;
	mw_growth_trend_clear(&history->best);
	mw_growth_trend_clear(&history->attempt);
	mw_growth_trend_clear(&history->fired);
	for (i = 0; i < MW_GROWTH_LEVELS; i++) {
		history->level[i].bin = 0;
		history->level[i].low = g->signal;
		history->level[i].high = history->level[i].peak = g->signal;
		history->level[i].ever = history->level[i].reserved = 0;
		for (bin = 0; bin < MW_GROWTH_BINS; bin++)
			history->level[i].top[bin] = 0;
		history->level[i].file[0] = g->file;
		history->level[i].vsz[0] = g->vsz;
		mw_growth_trend_clear(&history->trend[i]);
	}
	mw_growth_spurt_begin(&history->spurt, g);
	mw_growth_days_init(&history->days, g->signal);
}

/*
 * The four windows that are tried, in bins, the longest first. Computed, because a table
 * would be 16 bytes long: see mw_growth_calibrated_confidence().
 */
MW_INLINE __u32 mw_growth_window_bins(__u32 k)
{
	return k == 0 ? MW_GROWTH_BINS : k == 1 ? 19 : k == 2 ? 16 : 8;
}

/* Fits all windows of level @i. Its trend is the longest of those with the best score. */
MW_INLINE void mw_growth_fit_level(struct mw_growth_history *history, __u32 i)
{
	struct mw_growth_trend *best = &history->trend[i];
	__u32 k;

	mw_growth_trend_clear(best);
	for (k = 0; k < 4; k++) {
		if (!MW_GROWTH_CALL(fit_window)(history, i, mw_growth_window_bins(k)))
			continue;
		if (!best->window || history->attempt.score > best->score)
			*best = history->attempt;
	}
}

/*
 * The composition detector: the percentage of the signal in what the window gained,
 * mapped files being the rest.
 */
MW_INLINE __u32 mw_growth_signal_share(const struct mw_growth *g,
				       const struct mw_growth_level *level,
				       const struct mw_growth_trend *trend)
{
	__u32 past = mw_growth_level_past(level->file, level->bin, trend->window);
	__u32 file = mw_growth_sub_sat(g->file, past);

	return mw_growth_percent(trend->growth, mw_growth_add_sat(trend->growth, file));
}

/* Adds the last sample to level @i. Returns 1 if the rule "limit" is true for its trend. */
MW_INLINE int mw_growth_update_level(const struct mw_growth *g, struct mw_growth_history *history,
				     __u32 i)
{
	__u32 bin = (__u32)((g->last_ns - history->start_ns) / MW_GROWTH_BIN_NS);

	if (mw_growth_level_add(&history->level[i], bin >> MW_GROWTH_SHIFT(i), g->file, g->vsz,
				g->signal)) {
		MW_GROWTH_CALL(fit_level)(history, i);
		history->trend[i].share = (__u8)mw_growth_signal_share(g, &history->level[i],
								       &history->trend[i]);
	}
	return i < 2 && mw_growth_rule_trend(g, history, i);
}

/* Adds the last sample to the hours. Returns 1 if that closed one and "height" is true. */
MW_INLINE int mw_growth_update_days(const struct mw_growth *g, struct mw_growth_history *history)
{
	__u32 hour = (__u32)((g->last_ns - history->start_ns) / MW_GROWTH_HOUR_NS);
	struct mw_growth_days *days = &history->days;
	int found = 0;

	if (hour != days->hour) {
		mw_growth_days_close(days, hour);
		mw_growth_days_measure(days);
		found = mw_growth_days_judge(days, mw_growth_height_margin(g, history));
	}
	days->sum += g->signal;
	days->samples++;
	return found;
}

/* Adds the last sample to the history. Returns the rule that is true, or MW_GROWTH_NONE. */
MW_INLINE __u32 mw_growth_history_update(struct mw_growth *g, struct mw_growth_history *history)
{
	__u32 reason = MW_GROWTH_NONE, i;

	mw_growth_spurt_update(&history->spurt, g);
	mw_growth_trend_clear(&history->best);
	for (i = 0; i < MW_GROWTH_LEVELS; i++) {
		if (MW_GROWTH_CALL(update_level)(g, history, i) && !reason) {
			reason = MW_GROWTH_LIMIT;
			history->fired = history->trend[i];
		}
	}
	for (i = 0; i < MW_GROWTH_LEVELS; i++) {
		if (history->trend[i].window && history->trend[i].score >= history->best.score &&
		    history->trend[i].growth >= MW_GROWTH_MIB)
			history->best = history->trend[i];
	}
	if (MW_GROWTH_CALL(update_days)(g, history) && !reason)
		reason = MW_GROWTH_HEIGHT;
	return reason;
}

/* Copies a sample to the state, and updates the minima that a history is asked for by. */
MW_INLINE void mw_growth_take_sample(struct mw_growth *g, const struct mw_growth_sample *sample,
				     __u32 signal)
{
	__u32 jump = mw_growth_sub_sat(signal, g->signal);

	g->jump -= g->jump / 32;
	if (jump > g->jump)
		g->jump = jump;
	g->last_ns = sample->time_ns;
	g->signal = signal;
	g->file = sample->file;
	g->vsz = sample->vsz;
	g->headroom = sample->headroom;
	g->flags &= (__u8)~MW_GROWTH_F_WARM;
	if ((__u64)sample->touch.cold_high * 2 < sample->touch.gained)
		g->flags |= MW_GROWTH_F_WARM;
	if (signal < g->floor)
		g->floor = signal;
	if (g->last_ns - g->first_ns < MW_GROWTH_START_NS || g->vsz < g->vsz_floor)
		g->vsz_floor = g->vsz;
	if (signal - g->floor >= MW_GROWTH_HISTORY_SIGNAL ||
	    g->vsz - g->vsz_floor >= MW_GROWTH_HISTORY_VSZ)
		g->flags |= MW_GROWTH_F_HISTORY;
}

/*
 * Feeds one sample to the detectors. @history is NULL for a process without one; if
 * MW_GROWTH_F_HISTORY is set afterwards, the caller should make one with
 * mw_growth_history_init(). Returns MW_GROWTH_EVENT_*.
 */
MW_INLINE __u32 mw_growth_feed(struct mw_growth *g, struct mw_growth_history *history,
			       const struct mw_growth_sample *sample)
{
	__u32 signal = mw_growth_signal(sample), reason = MW_GROWTH_NONE, event;

	mw_growth_take_sample(g, sample, signal);
	mw_growth_episode_update(g, signal, sample->time_ns);
	/* Once for all rules: where they are checked, old verifiers have no stack left for it. */
	g->flags &= (__u8)~MW_GROWTH_F_STARTING;
	if (mw_growth_is_starting(g, &sample->touch))
		g->flags |= MW_GROWTH_F_STARTING;
	if (history) {
		reason = mw_growth_history_update(g, history);
		g->flags &= (__u8)~MW_GROWTH_F_RESERVED;
		if (mw_growth_is_reserving(g, history))
			g->flags |= MW_GROWTH_F_RESERVED;
	}
	if (reason == MW_GROWTH_HEIGHT && mw_growth_is_used(&sample->touch))
		reason = MW_GROWTH_NONE;
	event = mw_growth_notice_update(g, history, &sample->touch);
	/* A trend still shows growth for a while that has settled. */
	if (reason == MW_GROWTH_LIMIT && !(g->flags & MW_GROWTH_F_NOTICE))
		reason = MW_GROWTH_NONE;
	if (g->flags & MW_GROWTH_F_ALERT)
		event |= mw_growth_alert_update(g, history);
	else if (reason)
		event |= mw_growth_alert_raise_by_history(g, history, reason);
	else if (mw_growth_rule_limit(g, history))
		event |= mw_growth_alert_raise_by_episode(g, history);
	else if (mw_growth_rule_untouched(g, history, &sample->touch))
		event |= mw_growth_alert_raise_by_touch(g, history, &sample->touch);
	MW_GROWTH_CALL(judge)(g, history);
	return event;
}

#endif /* _MW_GROWTH_H */
