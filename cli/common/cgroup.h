/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Names of cgroups. Records identify a cgroup by the inode number of its directory in the
 * hierarchy of version 2; the directories below its mount point give the names.
 */
#ifndef MW_CGROUP_H
#define MW_CGROUP_H

#include "common/cmd.h"

struct mw_cgroups;

/* The mount point of version 2, or NULL if there is none. It counts from the folder of --root. */
const char *mw_cgroup_mount(const struct mw_cli *cli);

/* Allocates an empty list of cgroups. Returns 0 or -ENOMEM. */
int mw_cgroups_new(const struct mw_cli *cli, struct mw_cgroups **ret);
void mw_cgroups_free(struct mw_cgroups *cgroups);

/*
 * The path of a cgroup below the mount point, "/" for the root; NULL if there is no
 * such cgroup now. The directories are read again for an unknown id, but at most once
 * a second. The string belongs to @cgroups and is valid until the next call.
 */
const char *mw_cgroups_path(struct mw_cgroups *cgroups, uint64_t id);

/*
 * The id of a cgroup. @path begins with "/" and counts from the mount point; the full
 * path of the directory is accepted too. Returns 0 or a negative errno.
 */
int mw_cgroup_id(const struct mw_cli *cli, const char *path, uint64_t *ret);

#endif
