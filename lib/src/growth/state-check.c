// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What holds for each state that the detectors compute. Values that they only compare or
 * add with saturation may be anything; those that are indices, shifts or divisors, or
 * whose difference is taken, are checked.
 */
#include "growth/state-check.h"

#include <stdbool.h>
#include <string.h>

#include "growth/state-file.h"

/* The most bytes per second that the detectors compute: 2^32 pages in a millisecond. */
#define SLOPE_MAX (1ULL << 54)

static bool are_zero(const uint8_t *bytes, size_t n)
{
	while (n--)
		if (bytes[n])
			return false;
	return true;
}

static bool are_times_ordered(const struct mw_growth *g, uint64_t now_ns)
{
	return g->first_ns <= g->onset_ns && g->onset_ns <= g->top_ns && g->top_ns <= g->last_ns &&
	       g->last_ns <= now_ns;
}

static bool are_points_valid(const struct mw_growth *g)
{
	uint64_t age_ms = (g->last_ns - g->onset_ns) / 1000000;

	if (g->points < 1 || g->points > MW_GROWTH_POINTS || g->origin >= g->points ||
	    g->point[0].ms)
		return false;
	for (unsigned int i = 1; i < g->points; i++)
		if (g->point[i].ms < g->point[i - 1].ms ||
		    g->point[i].pages < g->point[i - 1].pages)
			return false;
	return g->point[g->points - 1].ms <= age_ms && g->point[g->points - 1].pages <= g->top;
}

static bool is_alert_valid(const struct mw_growth *g)
{
	bool raised = g->flags & MW_GROWTH_F_ALERT;

	if (g->reason > MW_GROWTH_UNTOUCHED || raised != (g->reason != MW_GROWTH_NONE))
		return false;
	if (!g->alert_ns)
		return !raised && !g->alert_s && !g->progress_s;
	return g->first_ns <= g->alert_ns && g->alert_ns <= g->last_ns &&
	       (g->alert_ns - g->first_ns) / MW_GROWTH_SECOND <= g->alert_s &&
	       g->alert_s <= g->progress_s && g->progress_s <= mw_growth_age_s(g);
}

static bool is_notice_valid(const struct mw_growth *g)
{
	bool raised = g->flags & MW_GROWTH_F_NOTICE;

	if (g->base_s > mw_growth_age_s(g) || g->rise_s > mw_growth_age_s(g) ||
	    (g->followed_min && (g->followed_min - 1U) * 60 > mw_growth_age_s(g) - g->base_s))
		return false;
	if (!g->notice_ns)
		return !raised && !g->rise_s && !(g->flags & MW_GROWTH_F_KNOWN);
	return g->first_ns <= g->notice_ns && g->notice_ns <= g->last_ns &&
	       (!raised || g->base_s <= g->rise_s);
}

static const char *check_growth(const struct mw_growth *g, uint64_t now_ns)
{
	if (!are_times_ordered(g, now_ns))
		return "a time is not in order";
	if (g->floor > g->signal)
		return "a minimum is too high";
	if (!are_points_valid(g))
		return "an episode is not valid";
	if (!is_alert_valid(g))
		return "an alert is not valid";
	if (!is_notice_valid(g))
		return "a notice is not valid";
	if (g->verdict > MW_GROWTH_LEAK || g->confidence > 100 || g->slope_bps > SLOPE_MAX)
		return "a verdict is not valid";
	for (unsigned int i = 0; i < MW_GROWTH_DETECTORS; i++)
		if (g->score[i] > 100)
			return "a score is above 100";
	return g->reserved ? "a reserved byte is not zero" : NULL;
}

static bool is_window_valid(uint32_t window)
{
	for (uint32_t k = 0; k < 4; k++)
		if (window == mw_growth_window_bins(k))
			return true;
	return !window;
}

static bool is_trend_valid(const struct mw_growth_trend *trend)
{
	return is_window_valid(trend->window) && trend->level < MW_GROWTH_LEVELS &&
	       trend->score <= 100 && trend->r2_permille <= 1000 && trend->share <= 100 &&
	       trend->slope_bps <= SLOPE_MAX && are_zero(trend->reserved, sizeof(trend->reserved));
}

static bool is_spurt_valid(const struct mw_growth_spurt *spurt, const struct mw_growth *g)
{
	for (unsigned int i = 1; i < MW_GROWTH_SPURT_POINTS; i++)
		if (spurt->point[i].ms < spurt->point[i - 1].ms ||
		    spurt->point[i].pages < spurt->point[i - 1].pages)
			return false;
	return spurt->slope_bps <= SLOPE_MAX &&
	       spurt->point[MW_GROWTH_SPURT_POINTS - 1].ms <= mw_growth_top_ms(g) &&
	       spurt->point[MW_GROWTH_SPURT_POINTS - 1].pages <= g->top;
}

static bool are_days_valid(const struct mw_growth_days *days, uint64_t age_ns)
{
	/* More samples in an hour than there are milliseconds would let the sum overflow. */
	return days->hour == age_ns / MW_GROWTH_HOUR_NS &&
	       days->samples <= MW_GROWTH_HOUR_NS / 1000000 && days->pace <= MW_GROWTH_MAX_D &&
	       days->sum <= (uint64_t)days->samples * MW_GROWTH_MISSING;
}

static const char *check_history(const struct mw_growth_history *history, const struct mw_growth *g)
{
	uint64_t bin;

	if (history->start_ns < g->first_ns || history->start_ns > g->last_ns)
		return "a history begins at a wrong time";
	bin = (g->last_ns - history->start_ns) / MW_GROWTH_BIN_NS;
	for (unsigned int i = 0; i < MW_GROWTH_LEVELS; i++) {
		const struct mw_growth_level *level = &history->level[i];

		if (level->bin != bin >> MW_GROWTH_SHIFT(i) || level->low > level->high ||
		    level->reserved)
			return "a level of a history is not valid";
		if (!is_trend_valid(&history->trend[i]) ||
		    (history->trend[i].window && history->trend[i].level != i))
			return "a trend is not valid";
	}
	if (!is_trend_valid(&history->best) || !is_trend_valid(&history->attempt) ||
	    !is_trend_valid(&history->fired))
		return "a trend is not valid";
	if (!is_spurt_valid(&history->spurt, g))
		return "a spurt is not valid";
	if (!are_days_valid(&history->days, g->last_ns - history->start_ns))
		return "an hour of a history is not valid";
	return NULL;
}

static const char *check_both(const struct mw_growth *g, const struct mw_growth_history *history,
			      uint64_t now_ns)
{
	const char *wrong = check_growth(g, now_ns);

	if (!wrong && history && !(g->flags & MW_GROWTH_F_HISTORY))
		wrong = "a history belongs to no growth";
	return wrong || !history ? wrong : check_history(history, g);
}

const char *mw_state_check(const struct mw_growth_key *key, const struct mw_growth_process *process,
			   const struct mw_growth_history *history, uint64_t now_ns)
{
	if (!key->tgid || key->tgid > INT32_MAX || key->reserved)
		return "a process id is not valid";
	if (process->limit > MEMWATCH_LIMIT_AS)
		return "a limit is not known";
	if (strnlen(process->comm, sizeof(process->comm)) == sizeof(process->comm))
		return "a name has no end";
	return check_both(&process->growth, history, now_ns);
}

const char *mw_state_check_class(const struct mw_state_class *class, const char *path,
				 const struct mw_growth_history *history, uint64_t now_ns)
{
	if (class->kind >= MEMWATCH_CLASSES)
		return "a class of memory is not known";
	if (class->level & ~(unsigned int)(MEMWATCH_GROWTH_NOTICE | MEMWATCH_GROWTH_ALERT))
		return "a level is not known";
	if (path[0] != '/')
		return "a path of a cgroup is not valid";
	if (class->state.flags & MW_GROWTH_F_KNOWN)
		return "a cgroup is no program";
	if (class->base_ns > class->state.last_ns || class->since_ns > class->state.last_ns)
		return "a time is not in order";
	return check_both(&class->state, history, now_ns);
}
