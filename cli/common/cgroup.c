// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The list of cgroups, sorted by id. It is read anew when an id is not found.
 */
#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/array.h"
#include "common/cgroup.h"
#include "common/root.h"

struct cgroup_name {
	uint64_t id;
	char *path;
};

struct mw_cgroups {
	const struct mw_cli *cli;
	struct cgroup_name *names;
	size_t nr, capacity;
	time_t read_at; /* 0: never */
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

static void clear_names(struct mw_cgroups *c)
{
	for (size_t i = 0; i < c->nr; i++)
		free(c->names[i].path);
	c->nr = 0;
}

void mw_cgroups_free(struct mw_cgroups *cgroups)
{
	if (!cgroups)
		return;
	clear_names(cgroups);
	free(cgroups->names);
	free(cgroups);
}

static int compare_ids(const void *a, const void *b)
{
	const struct cgroup_name *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static bool add_name(struct mw_cgroups *c, uint64_t id, const char *path)
{
	if (mw_array_reserve(c->names, c->capacity, c->nr + 1))
		return false;
	c->names[c->nr].id = id;
	c->names[c->nr].path = strdup(*path ? path : "/");
	if (!c->names[c->nr].path)
		return false;
	c->nr++;
	return true;
}

/* Where only hierarchies of version 1 have controllers, version 2 is often in a folder beside them.
 */
const char *mw_cgroup_mount(const struct mw_cli *cli)
{
	static const char *const places[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	char file[64];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(file, sizeof(file), "%s/cgroup.controllers", places[i]);
		if (!mw_root_access(cli, file, F_OK))
			return places[i];
	}
	return NULL;
}

static void read_names(struct mw_cgroups *c)
{
	const char *mount = mw_cgroup_mount(c->cli);
	char root[PATH_MAX];
	char *paths[] = { root, NULL };
	FTSENT *e;
	FTS *fts;

	clear_names(c);
	if (!mount)
		return;
	mw_root_path(c->cli, mount, root, sizeof(root));
	fts = fts_open(paths, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, NULL);
	while (fts && (e = fts_read(fts)))
		if (e->fts_info == FTS_D &&
		    !add_name(c, e->fts_statp->st_ino, e->fts_path + strlen(root)))
			break;
	if (fts)
		fts_close(fts);
	if (c->nr)
		qsort(c->names, c->nr, sizeof(*c->names), compare_ids);
}

static const char *find_path(const struct mw_cgroups *c, uint64_t id)
{
	struct cgroup_name key = { .id = id }, *name;

	if (!c->nr)
		return NULL;
	name = bsearch(&key, c->names, c->nr, sizeof(key), compare_ids);
	return name ? name->path : NULL;
}

const char *mw_cgroups_path(struct mw_cgroups *cgroups, uint64_t id)
{
	time_t now = time(NULL);
	const char *path;

	if (!cgroups || !id)
		return NULL;
	path = find_path(cgroups, id);
	if (path || now == cgroups->read_at)
		return path;
	read_names(cgroups);
	/* With very many directories it has taken its time. */
	cgroups->read_at = time(NULL);
	return find_path(cgroups, id);
}

int mw_cgroup_id(const struct mw_cli *cli, const char *path, uint64_t *ret)
{
	const char *mount = mw_cgroup_mount(cli);
	char full[PATH_MAX], below[PATH_MAX];
	struct stat st;
	size_t len;

	if (!mount)
		return -ENOENT;
	len = strlen(mount);
	if (!strncmp(path, mount, len) && (!path[len] || path[len] == '/'))
		path += len;
	snprintf(below, sizeof(below), "%s%s", mount, path);
	if (stat(mw_root_path(cli, below, full, sizeof(full)), &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	*ret = st.st_ino;
	return 0;
}
