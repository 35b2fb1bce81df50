// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Decides whom the growth of a cgroup is told about, see blame.h.
 */
#include "growth/blame.h"

#include <string.h>

#include "base/timemath.h"
#include "growth/past.h"

/* Who holds three quarters of a growth accounts for it; who holds half of it is named. */
#define ACCOUNTS(growth) ((growth) - (growth) / 4)
#define NAMED(growth)	 ((growth) / 2)

/*
 * Page tables are a 512th of the memory that they map, or a little more: what has gained less than
 * this part of another class is of that class.
 */
#define TABLES_PART 8U

static uint64_t trend_start(const struct mw_growth *g, const struct mw_growth_trend *trend)
{
	return mw_sub_sat(g->last_ns, trend->window * (MW_GROWTH_BIN_NS
						       << MW_GROWTH_SHIFT((uint64_t)trend->level)));
}

void mw_blame_note_times(struct mw_group_class *class, unsigned int event)
{
	const struct mw_growth_history *history = class->history;
	const struct mw_growth *g = &class->state;

	if (event & MW_GROWTH_EVENT_NOTICE && mw_growth_trend_grows(history))
		class->base_ns = mw_min_u64(class->base_ns, trend_start(g, &history->best));
	if (!(event & MW_GROWTH_EVENT_ALERT))
		return;
	class->since_ns = mw_growth_point_ns(g, mw_growth_newest_origin(g, history));
	if (g->reason == MW_GROWTH_HEIGHT)
		class->since_ns = mw_sub_sat(g->last_ns,
					     MW_GROWTH_RECENT_HOURS * MW_GROWTH_HOUR_NS);
	else if (history && history->fired.window &&
		 g->alert_from == mw_growth_sub_sat(g->signal, history->fired.growth))
		class->since_ns = mw_min_u64(class->since_ns, trend_start(g, &history->fired));
}

/*
 * Since when the class grows as it does. Growth that becomes faster is no start-up, unless what it
 * had gained until then is little: cgroups grow slowly when a process starts in them as well.
 */
static uint64_t growth_began(const struct mw_group_class *class)
{
	const struct mw_growth *g = &class->state;
	const struct mw_growth_point *origin = mw_growth_episode_origin(g);
	const struct mw_growth_point *newest = mw_growth_newest_origin(g, class->history);
	uint32_t before = mw_growth_sub_sat(newest->pages, origin->pages);
	uint32_t after = mw_growth_sub_sat(g->signal, newest->pages);

	if (before < after / 2)
		return class->since_ns;
	return mw_min_u64(class->since_ns, mw_growth_point_ns(g, origin));
}

bool mw_blame_is_urgent(const struct mw_group_class *class)
{
	const struct mw_group *group = class->group;
	const struct mw_growth *g = &class->state;
	const struct mw_growth whole = {
		.first_ns = group->first_ns,
		.last_ns = group->last.time_ns,
		.signal = group->total,
		.floor = group->total_floor,
		.headroom = group->last.headroom,
	};
	uint64_t progress_ns = g->first_ns + g->progress_s * MW_GROWTH_SECOND;
	int starts = mw_sub_sat(progress_ns, growth_began(class)) < MW_GROWTH_START_NS;

	if (g->reason != MW_GROWTH_LIMIT)
		return true;
	if (g->headroom == MW_GROWTH_NO_LIMIT)
		return false;
	return mw_growth_has_consumed(mw_growth_sub_sat(g->signal, g->alert_from), g->headroom,
				      mw_growth_consumed_share(&whole, starts));
}

static bool is_current(const struct mw_groups *groups, const struct mw_group_class *class)
{
	return class && class->state.last_ns + MW_GROUP_CURRENT_NS >= groups->now;
}

static uint32_t growth_of(const struct mw_group_class *class, uint64_t since_ns)
{
	return mw_past_growth(&class->state, class->history, since_ns);
}

/* Does another class of the group account for the growth? */
static bool is_minor(const struct mw_groups *groups, const struct mw_group_class *class,
		     uint64_t since_ns, uint32_t growth)
{
	for (unsigned int i = 0; i < MEMWATCH_CLASSES; i++) {
		const struct mw_group_class *other = class->group->classes[i];

		if (i == class->class || !is_current(groups, other))
			continue;
		if (class->class == MEMWATCH_CLASS_PAGETABLES &&
		    growth_of(other, since_ns) / TABLES_PART >= growth)
			return true;
		/* On the machine, the buffers of sockets are slab or memory of the kernel too. */
		if (i == MEMWATCH_CLASS_SOCK && !strcmp(class->group->path, "/") &&
		    (class->class == MEMWATCH_CLASS_SLAB ||
		     class->class == MEMWATCH_CLASS_KERNEL) &&
		    growth_of(other, since_ns) >= NAMED(growth))
			return true;
	}
	return false;
}

/*
 * Does one of the cgroups below account for the growth, or several in which the detectors found
 * the same? They are judged by themselves.
 */
static bool is_of_children(const struct mw_groups *groups, const struct mw_group_class *class,
			   unsigned int flag, uint64_t since_ns, uint32_t growth)
{
	uint32_t told = 0;

	for (uint32_t i = 0; i < groups->nr; i++) {
		const struct mw_group *child = groups->groups[i];
		const struct mw_group_class *part = child->classes[class->class];
		uint32_t grown;

		if (child->parent != class->group || !is_current(groups, part))
			continue;
		grown = growth_of(part, since_ns);
		if (grown >= ACCOUNTS(growth))
			return true;
		if (part->state.flags & flag)
			told = mw_growth_add_sat(told, grown);
	}
	return told >= ACCOUNTS(growth);
}

bool mw_blame_group(const struct mw_groups *groups, struct mw_group_class *class,
		    unsigned int level, uint64_t since_ns)
{
	unsigned int flag = level == MEMWATCH_GROWTH_ALERT ? MW_GROWTH_F_ALERT : MW_GROWTH_F_NOTICE;
	uint32_t growth = growth_of(class, since_ns);

	memset(&class->by, 0, sizeof(class->by));
	if (is_minor(groups, class, since_ns, growth) ||
	    is_of_children(groups, class, flag, since_ns, growth))
		return false;
	if (!groups->blame ||
	    (class->class != MEMWATCH_CLASS_ANON && class->class != MEMWATCH_CLASS_SHMEM))
		return true;
	if (!groups->blame(groups->userdata, class, since_ns, NAMED(growth), &class->by))
		return true;
	return class->by.pages < ACCOUNTS(growth);
}
