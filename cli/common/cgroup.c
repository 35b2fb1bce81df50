// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * cgroup id to path and back.
 */
#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/cgroup.h"
#include "common/root.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

struct entry {
	uint64_t id;
	char *path;
};

struct mw_cgroups {
	const struct mw_cli *cli;
	struct entry *entries;
	size_t nr, room;
	time_t read_at;
	bool read;
};

int mw_cgroups_new(const struct mw_cli *cli, struct mw_cgroups **ret)
{
	struct mw_cgroups *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->cli = cli;
	*ret = c;
	return 0;
}

static void forget(struct mw_cgroups *c)
{
	for (size_t i = 0; i < c->nr; i++)
		free(c->entries[i].path);
	c->nr = 0;
}

void mw_cgroups_free(struct mw_cgroups *cgroups)
{
	if (!cgroups)
		return;
	forget(cgroups);
	free(cgroups->entries);
	free(cgroups);
}

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static bool add(struct mw_cgroups *c, uint64_t id, const char *path)
{
	if (c->nr == c->room) {
		size_t room = c->room ? 2 * c->room : 128;
		struct entry *entries = reallocarray(c->entries, room, sizeof(*entries));

		if (!entries)
			return false;
		c->entries = entries;
		c->room = room;
	}
	c->entries[c->nr].id = id;
	c->entries[c->nr].path = strdup(*path ? path : "/");
	if (!c->entries[c->nr].path)
		return false;
	c->nr++;
	return true;
}

static void read_all(struct mw_cgroups *c)
{
	char root[PATH_MAX];
	char *paths[] = { root, NULL };
	FTSENT *e;
	FTS *fts;

	forget(c);
	mw_root_path(c->cli, CGROUP_ROOT, root, sizeof(root));
	fts = fts_open(paths, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, NULL);
	while (fts && (e = fts_read(fts)))
		if (e->fts_info == FTS_D &&
		    !add(c, e->fts_statp->st_ino, e->fts_path + strlen(root)))
			break;
	if (fts)
		fts_close(fts);
	if (c->nr)
		qsort(c->entries, c->nr, sizeof(*c->entries), compare);
}

static const char *find(const struct mw_cgroups *c, uint64_t id)
{
	struct entry key = { .id = id };
	struct entry *e = c->nr ? bsearch(&key, c->entries, c->nr, sizeof(key), compare) : NULL;

	return e ? e->path : NULL;
}

const char *mw_cgroups_path(struct mw_cgroups *cgroups, uint64_t id)
{
	time_t now = time(NULL);
	const char *path;

	if (!cgroups || !id)
		return NULL;
	path = find(cgroups, id);
	if (path || (cgroups->read && now == cgroups->read_at))
		return path;
	read_all(cgroups);
	cgroups->read = true;
	cgroups->read_at = now;
	return find(cgroups, id);
}

int mw_cgroup_id(const struct mw_cli *cli, const char *path, uint64_t *ret)
{
	char full[PATH_MAX], below[PATH_MAX];
	struct stat st;

	if (strncmp(path, CGROUP_ROOT, strlen(CGROUP_ROOT)))
		snprintf(below, sizeof(below), CGROUP_ROOT "%s", path);
	else
		snprintf(below, sizeof(below), "%s", path);
	if (stat(mw_root_path(cli, below, full, sizeof(full)), &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	*ret = st.st_ino;
	return 0;
}
