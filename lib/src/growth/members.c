// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Finds the process that holds the growth of a cgroup, see members.h. /proc says in which cgroup a
 * process is; only few processes have grown enough to be asked.
 */
#include "growth/members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "growth/past.h"

struct search {
	const struct mw_members *members;
	unsigned int class;
	uint64_t since_ns;
	uint32_t least;
	struct mw_group_by *best;
};

/* Does a line of /proc/PID/cgroup, "NUMBER:CONTROLLERS:PATH", name the memory controller? */
static bool is_of_memory(struct mw_text line, bool legacy, struct mw_text *path)
{
	struct mw_text number, controllers, one;

	if (!mw_text_take(&line, ':', &number) || !mw_text_take(&line, ':', &controllers))
		return false;
	*path = line;
	if (!legacy)
		return mw_text_is(number, "0");
	while (mw_text_take(&controllers, ',', &one))
		if (mw_text_is(one, "memory"))
			return true;
	return false;
}

bool mw_members_path(struct memwatch_ctx *ctx, bool legacy, uint32_t tgid, char *path, size_t size)
{
	struct mw_text rest, line, found;
	bool is_found = false;
	char name[64], *text;
	size_t len;

	snprintf(name, sizeof(name), "/proc/%u/cgroup", tgid);
	if (mw_text_read_file(ctx, name, &text, &len))
		return false;
	rest = (struct mw_text){ text, len };
	while (!is_found && mw_text_take(&rest, '\n', &line))
		is_found = is_of_memory(line, legacy, &found);
	is_found = is_found && mw_text_copy(found, path, size);
	free(text);
	return is_found;
}

static bool is_member(const struct mw_members *members, uint32_t tgid)
{
	char path[4096];

	if (!strcmp(members->path, "/"))
		return true;
	return mw_members_path(members->ctx, members->legacy, tgid, path, sizeof(path)) &&
	       mw_group_contains(members->path, path);
}

static void look_at(const struct search *search, const struct mw_snapshot_item *item)
{
	const struct mw_growth_process *process = &item->process;
	const struct mw_growth *g = &process->growth;
	struct mw_growth_history history;
	uint32_t private = mw_growth_add_sat(process->anon, process->swap), part, grown;
	bool has_history;

	part = search->class == MEMWATCH_CLASS_SHMEM ? mw_growth_sub_sat(g->signal, private)
						     : private;
	if (part < search->least || part <= search->best->pages)
		return;
	if (g->first_ns <= search->since_ns && g->signal - g->floor < search->least)
		return;
	has_history = g->flags & MW_GROWTH_F_HISTORY &&
		      mw_bpf_growth_history(search->members->bpf, &item->key, &history);
	grown = mw_past_growth(g, has_history ? &history : NULL, search->since_ns);
	if (grown < part)
		part = grown;
	if (part < search->least || part <= search->best->pages ||
	    !is_member(search->members, item->key.tgid))
		return;
	search->best->tgid = item->key.tgid;
	search->best->pages = part;
	memcpy(search->best->comm, process->comm, sizeof(process->comm));
}

bool mw_members_find(const struct mw_members *members, unsigned int class, uint64_t since_ns,
		     uint32_t least, struct mw_group_by *ret)
{
	const struct search search = { members, class, since_ns, least, ret };

	for (size_t i = 0; i < members->processes->count; i++)
		look_at(&search, &members->processes->items[i]);
	return ret->pages;
}
