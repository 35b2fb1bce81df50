// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Keeps the groups and feeds their samples to the detectors, see groups.h.
 */
#include "growth/groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/context.h"
#include "growth/blame.h"
#include "growth/pages.h"
#include "growth/past.h"
#include "growth/row.h"

/* A trace is an untrusted file: it must not take all memory. */
#define GROUPS_MAX (1U << 18)

void mw_groups_init(struct mw_groups *groups)
{
	mw_index_init(&groups->by_path);
}

static void class_free(struct mw_group_class *class)
{
	if (!class)
		return;
	mw_spans_free(&class->spans);
	free(class->history);
	free(class);
}

static void group_free(struct mw_group *group)
{
	for (unsigned int i = 0; i < MEMWATCH_CLASSES; i++)
		class_free(group->classes[i]);
	free(group->path);
	free(group);
}

void mw_groups_uninit(struct mw_groups *groups)
{
	for (uint32_t i = 0; i < groups->nr; i++)
		group_free(groups->groups[i]);
	free(groups->groups);
	free(groups->list);
	mw_index_free(&groups->by_path);
}

bool mw_group_contains(const char *above, const char *path)
{
	size_t len = strlen(above);

	if (!strcmp(above, "/"))
		return true;
	return !strncmp(above, path, len) && (!path[len] || path[len] == '/');
}

static struct mw_group *find_group(const struct mw_groups *groups, const char *path, size_t len)
{
	uint32_t hash = mw_index_hash_text(&groups->by_path, path, len), at, number;

	mw_index_for_each (&groups->by_path, hash, &at, number) {
		struct mw_group *group = groups->groups[number];

		if (!strncmp(group->path, path, len) && !group->path[len])
			return group;
	}
	return NULL;
}

static struct mw_group *add_group(struct mw_groups *groups, const char *path)
{
	struct mw_group *group = calloc(1, sizeof(*group));

	if (group)
		group->path = strdup(path);
	if (!group || !group->path || groups->nr == GROUPS_MAX ||
	    mw_array_reserve(groups->groups, groups->max, groups->nr + 1U) ||
	    mw_index_insert(&groups->by_path,
			    mw_index_hash_text(&groups->by_path, path, strlen(path)), groups->nr)) {
		mw_fail_memory(groups->ctx, "growth of cgroups");
		if (group)
			group_free(group);
		return NULL;
	}
	groups->groups[groups->nr++] = group;
	groups->linked = false;
	return group;
}

struct mw_group *mw_groups_get(struct mw_groups *groups, const char *path)
{
	struct mw_group *group = find_group(groups, path, strlen(path));

	return group ? group : add_group(groups, path);
}

/* Finds the nearest known ancestor of each group. */
static void link_groups(struct mw_groups *groups)
{
	for (uint32_t i = 0; i < groups->nr; i++) {
		struct mw_group *group = groups->groups[i];
		size_t len = strlen(group->path);

		group->parent = NULL;
		while (len > 1 && !group->parent) {
			while (len > 1 && group->path[len - 1] != '/')
				len--;
			len -= len > 1;
			group->parent = find_group(groups, group->path, len);
		}
	}
	groups->linked = true;
}

/*
 * A class that is new in a group that is not had nothing before. Its age is that of the group, so
 * that its growth is not taken for the start-up of something.
 */
static struct mw_group_class *add_class(struct mw_groups *groups, struct mw_group *group,
					uint32_t number, const struct mw_group_sample *sample)
{
	struct mw_group_class *class = calloc(1, sizeof(*class));

	if (!class || mw_array_reserve(groups->list, groups->max_list, groups->nr_list + 1U)) {
		free(class);
		mw_fail_memory(groups->ctx, "growth of cgroups");
		return NULL;
	}
	class->group = group;
	class->class = number;
	class->key = ++groups->keys;
	if (group->last.time_ns)
		mw_growth_init(&class->state, group->last.time_ns, 0);
	else
		mw_growth_init(&class->state, sample->time_ns, sample->pages[number]);
	class->state.first_ns = group->first_ns;
	class->state.base_s = mw_growth_age_s(&class->state);
	group->classes[number] = class;
	groups->list[groups->nr_list++] = class;
	return class;
}

/* Feeds the pages of one class to its detectors. */
static int feed_class(struct mw_groups *groups, struct mw_group_class *class,
		      const struct mw_group_sample *sample)
{
	struct mw_growth_sample converted = {
		.time_ns = sample->time_ns,
		.anon = sample->pages[class->class],
		.headroom = sample->headroom,
	};
	struct mw_growth *g = &class->state;
	unsigned int event;

	if (!(g->flags & MW_GROWTH_F_NOTICE))
		class->base_ns = g->first_ns + g->base_s * MW_GROWTH_SECOND;
	event = mw_growth_feed(g, class->history, &converted);
	mw_blame_note_times(class, event);
	if (g->flags & MW_GROWTH_F_HISTORY && !class->history) {
		class->history = calloc(1, sizeof(*class->history));
		if (!class->history)
			return mw_fail_memory(groups->ctx, "growth history");
		mw_growth_history_init(class->history, g);
	}
	return 0;
}

int mw_groups_feed(struct mw_groups *groups, struct mw_group *group,
		   const struct mw_group_sample *sample)
{
	int err = 0;

	if (sample->time_ns < group->last.time_ns)
		return mw_fail(groups->ctx, -EINVAL,
			       "cgroup %s: the time of a sample is before that of the last one",
			       group->path);
	if (!group->last.time_ns) {
		group->first_ns = sample->time_ns;
		group->total_floor = ~0U;
	}
	group->total = 0;
	for (unsigned int i = 0; i < MEMWATCH_CLASSES; i++)
		group->total = mw_growth_add_sat(group->total, sample->pages[i]);
	if (group->total < group->total_floor)
		group->total_floor = group->total;
	for (unsigned int i = 0; !err && i < MEMWATCH_CLASSES; i++) {
		struct mw_group_class *class = group->classes[i];

		if (!class && sample->pages[i] >= MW_GROUP_LEAST) {
			class = add_class(groups, group, i, sample);
			err = class ? 0 : -ENOMEM;
		}
		if (class)
			err = feed_class(groups, class, sample);
	}
	group->last = *sample;
	groups->now = sample->time_ns;
	return err;
}

/* The notice and the alert of a class that was restored. */
static int restore_spans(struct mw_groups *groups, struct mw_group_class *class)
{
	MEMWATCH_OPTS(memwatch_growth_row, row);
	int err = 0;

	mw_growth_row_fill(&row, &class->state, class->history);
	/* The estimate of that time; its interval is not kept. */
	row.eta_ns = row.eta_low_ns = row.eta_high_ns = row.alert_eta_ns;
	if (class->level & MEMWATCH_GROWTH_NOTICE)
		err = mw_spans_note(groups->ctx, &class->spans, MEMWATCH_GROWTH_NOTICE,
				    class->state.notice_ns, &row);
	if (!err && class->level & MEMWATCH_GROWTH_ALERT)
		err = mw_spans_note(groups->ctx, &class->spans, MEMWATCH_GROWTH_ALERT,
				    class->state.first_ns + class->state.alert_s * MW_GROWTH_SECOND,
				    &row);
	return err;
}

int mw_groups_restore(struct mw_groups *groups, const struct mw_state_class *saved,
		      const char *path, const struct mw_growth_history *history)
{
	struct mw_group *group = find_group(groups, path, strlen(path));
	struct mw_group_class *class;

	if (!group || group->last.time_ns < saved->state.last_ns)
		return 0;
	class = group->classes[saved->kind];
	if (!class)
		class = add_class(groups, group, saved->kind, &group->last);
	if (!class)
		return -ENOMEM;
	free(class->history);
	class->history = NULL;
	if (history) {
		class->history = malloc(sizeof(*history));
		if (!class->history)
			return mw_fail_memory(groups->ctx, "growth history");
		*class->history = *history;
	}
	class->state = saved->state;
	class->level = saved->level;
	class->base_ns = saved->base_ns;
	class->since_ns = saved->since_ns;
	group->first_ns = saved->state.first_ns;
	if (saved->total_floor < group->total_floor)
		group->total_floor = saved->total_floor;
	mw_spans_free(&class->spans);
	return restore_spans(groups, class) ?: 1;
}

/* Raises or ends what @event says. */
static int change_level(struct mw_groups *groups, struct mw_group_class *class, unsigned int event)
{
	MEMWATCH_OPTS(memwatch_growth_row, row);
	int err;

	switch (event) {
	case MEMWATCH_GROWTH_SETTLE:
		class->level &= ~(unsigned int)MEMWATCH_GROWTH_NOTICE;
		break;
	case MEMWATCH_GROWTH_CLEAR:
		class->level &= ~(unsigned int)MEMWATCH_GROWTH_ALERT;
		break;
	default:
		class->level |= event;
	}
	mw_growth_row_fill(&row, &class->state, class->history);
	err = mw_spans_note(groups->ctx, &class->spans, event, groups->now, &row);
	if (!err && groups->tell)
		err = groups->tell(groups->userdata, class, event, groups->now);
	return err;
}

static int raise_level(struct mw_groups *groups, struct mw_group_class *class, unsigned int level,
		       uint64_t since_ns)
{
	if (class->level & level || !mw_blame_group(groups, class, level, since_ns))
		return 0;
	return change_level(groups, class, level);
}

static int judge_class(struct mw_groups *groups, struct mw_group_class *class)
{
	unsigned int flags = class->state.flags;
	int err = 0;

	if (class->level & MEMWATCH_GROWTH_NOTICE && !(flags & MW_GROWTH_F_NOTICE))
		err = change_level(groups, class, MEMWATCH_GROWTH_SETTLE);
	if (!err && class->level & MEMWATCH_GROWTH_ALERT && !(flags & MW_GROWTH_F_ALERT))
		err = change_level(groups, class, MEMWATCH_GROWTH_CLEAR);
	if (!err && flags & MW_GROWTH_F_NOTICE)
		err = raise_level(groups, class, MEMWATCH_GROWTH_NOTICE, class->base_ns);
	if (!err && flags & MW_GROWTH_F_ALERT && mw_blame_is_urgent(class))
		err = raise_level(groups, class, MEMWATCH_GROWTH_ALERT, class->since_ns);
	return err;
}

int mw_groups_judge(struct mw_groups *groups)
{
	int err = 0;

	if (groups->judged_ns == groups->now)
		return 0;
	groups->judged_ns = groups->now;
	if (!groups->linked)
		link_groups(groups);
	for (uint32_t i = 0; !err && i < groups->nr_list; i++)
		if (groups->list[i]->level ||
		    groups->list[i]->state.flags & (MW_GROWTH_F_NOTICE | MW_GROWTH_F_ALERT))
			err = judge_class(groups, groups->list[i]);
	return err;
}

/* Ends what was raised for a class of a cgroup that exists no more. */
static int end_class(struct mw_groups *groups, struct mw_group_class *class)
{
	int err = 0;

	if (class && class->level & MEMWATCH_GROWTH_NOTICE)
		err = change_level(groups, class, MEMWATCH_GROWTH_SETTLE);
	if (!err && class && class->level & MEMWATCH_GROWTH_ALERT)
		err = change_level(groups, class, MEMWATCH_GROWTH_CLEAR);
	return err;
}

int mw_groups_drop(struct mw_groups *groups, uint64_t before_ns)
{
	uint32_t kept = 0, nr = groups->nr;
	int err = 0;

	for (uint32_t i = 0; i < nr; i++)
		for (unsigned int c = 0; !err && c < MEMWATCH_CLASSES; c++)
			if (groups->groups[i]->last.time_ns < before_ns)
				err = end_class(groups, groups->groups[i]->classes[c]);
	for (uint32_t i = 0; i < groups->nr_list; i++)
		if (groups->list[i]->group->last.time_ns >= before_ns)
			groups->list[kept++] = groups->list[i];
	groups->nr_list = kept;
	mw_index_clear(&groups->by_path);
	groups->nr = 0;
	groups->linked = false;
	for (uint32_t i = 0; i < nr; i++) {
		struct mw_group *group = groups->groups[i];

		if (group->last.time_ns < before_ns) {
			group_free(group);
			continue;
		}
		/* The index had room for all of them. */
		mw_index_insert(
			&groups->by_path,
			mw_index_hash_text(&groups->by_path, group->path, strlen(group->path)),
			groups->nr);
		groups->groups[groups->nr++] = group;
	}
	return err;
}

void mw_groups_fill(const struct mw_group_class *class, struct memwatch_growth_group *group,
		    struct memwatch_growth_row *row)
{
	struct mw_growth g = class->state;

	group->kind = class->class;
	group->path = class->group->path;
	group->key = class->key;
	group->by_tgid = class->by.tgid;
	memcpy(group->by_comm, class->by.comm, sizeof(group->by_comm));
	/* An alert that is not raised counts for nothing. */
	if (!(class->level & MEMWATCH_GROWTH_ALERT)) {
		g.flags &= (__u8)~MW_GROWTH_F_ALERT;
		g.reason = MW_GROWTH_NONE;
		mw_growth_judge(&g, class->history);
	}
	strcpy(row->comm, memwatch_growth_class_name(class->class));
	row->limit = class->group->last.limit;
	mw_growth_row_fill(row, &g, class->history);
	/* A notice that comes before there is a slope is about what was gained since its base. */
	if (!row->slope && class->level & MEMWATCH_GROWTH_NOTICE) {
		row->growth_bytes = mw_bytes_from_pages(
			mw_past_growth(&class->state, class->history, class->base_ns));
		row->since_ns = class->base_ns;
	}
	mw_spans_fill_row(&class->spans, row);
	if (row->first_alert_ns == MEMWATCH_GROWTH_NONE)
		row->alert_slope = 0;
}

const char *memwatch_growth_class_name(unsigned int class)
{
	static const char *const names[] = {
		[MEMWATCH_CLASS_ANON] = "anon",	    [MEMWATCH_CLASS_SHMEM] = "shmem",
		[MEMWATCH_CLASS_KERNEL] = "kernel", [MEMWATCH_CLASS_SLAB] = "slab",
		[MEMWATCH_CLASS_SOCK] = "sock",	    [MEMWATCH_CLASS_PAGETABLES] = "pagetables",
	};

	return class < MEMWATCH_CLASSES ? names[class] : "unknown";
}
