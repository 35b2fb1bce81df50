/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Names of cgroups. The kernel gives the id, which is the inode number of the
 * directory; names come from walking /sys/fs/cgroup.
 */
#ifndef MW_CGROUP_H
#define MW_CGROUP_H

#include "common/cmd.h"

struct mw_cgroups;

/* 0 or -ENOMEM. Nothing is read yet. */
int mw_cgroups_new(const struct mw_cli *cli, struct mw_cgroups **ret);
void mw_cgroups_free(struct mw_cgroups *cgroups);

/*
 * "/" and below, or NULL if there is no such cgroup now. Owned by @cgroups; an
 * unknown id makes it look again, at most once a second.
 */
const char *mw_cgroups_path(struct mw_cgroups *cgroups, uint64_t id);

/* The id of "/path" or of a directory below /sys/fs/cgroup: 0 or a negative errno. */
int mw_cgroup_id(const struct mw_cli *cli, const char *path, uint64_t *ret);

#endif
