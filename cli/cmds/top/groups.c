// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * top --growth: the notices and alerts of cgroups and of the machine. Their memory is in no row
 * of the table, so each has a line of its own.
 */
#include <string.h>

#include "cmds/top/top.h"
#include "growth/group.h"

/* Alerts come before notices, and what grows faster before what grows more slowly. */
static bool comes_before(const struct memwatch_growth_row *a, const struct memwatch_growth_row *b)
{
	return a->verdict != b->verdict ? a->verdict > b->verdict : a->slope > b->slope;
}

static void insert_group(struct top *top, const struct top_group *new)
{
	size_t at = 0;

	while (at < top->nr_groups && !comes_before(&new->row, &top->groups[at].row))
		at++;
	if (at == TOP_GROUPS)
		return;
	if (top->nr_groups < TOP_GROUPS)
		top->nr_groups++;
	memmove(top->groups + at + 1, top->groups + at,
		(top->nr_groups - at - 1) * sizeof(*top->groups));
	top->groups[at] = *new;
}

void mw_top_take_groups(struct top *top)
{
	struct top_group new = { .group = { .sz = sizeof(new.group) },
				 .row = { .sz = sizeof(new.row) } };

	top->nr_groups = 0;
	for (unsigned int i = 0;
	     top->monitor.watch &&
	     memwatch_watch_get_group(top->monitor.watch, i, &new.group, &new.row) == 1;
	     i++) {
		if (new.row.verdict < MEMWATCH_GROWTH_GROWING ||
		    new.row.first_notice_ns == MEMWATCH_GROWTH_NONE)
			continue;
		snprintf(new.path, sizeof(new.path), "%s", new.group.path);
		insert_group(top, &new);
	}
	for (size_t i = 0; i < top->nr_groups; i++)
		top->groups[i].group.path = top->groups[i].path;
}

const char *mw_top_group_sentence(const struct top_group *group, char *buf, size_t size)
{
	bool alert = group->row.verdict == MEMWATCH_GROWTH_LEAK;
	char sentence[TOP_SENTENCE];

	mw_group_state_sentence(&group->group, &group->row, sentence, sizeof(sentence));
	snprintf(buf, size, "%s %s", alert ? "ALERT" : "notice", sentence);
	return buf;
}

void mw_top_groups_json(const struct top *top, struct mw_json *json)
{
	if (!top->monitor.watch)
		return;
	mw_json_array(json, "growth_groups");
	for (size_t i = 0; i < top->nr_groups; i++) {
		mw_json_row(json, NULL);
		mw_group_json_members(&top->groups[i].group, &top->groups[i].row, top->first_ns,
				      json);
		mw_json_object_end(json);
	}
	mw_json_array_end(json);
}
