/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Files of the kernel, below --root when a test gives one.
 */
#ifndef MW_ROOT_H
#define MW_ROOT_H

#include "common/cmd.h"

/* Where @path is really looked for. */
const char *mw_root_path(const struct mw_cli *cli, const char *path, char *buf, size_t size);

/* fopen() for reading. */
FILE *mw_root_open(const struct mw_cli *cli, const char *path);

/*
 * First line of a small file, without its newline, cut to @size. Returns its
 * length or a negative errno.
 */
int mw_root_line(const struct mw_cli *cli, const char *path, char *buf, size_t size);

/* access(2): 0 or a negative errno. */
int mw_root_access(const struct mw_cli *cli, const char *path, int mode);

/*
 * When a process started, in clock ticks since boot: a later process of this number
 * does not share it. 0: there is no such process.
 */
uint64_t mw_root_start_ticks(const struct mw_cli *cli, uint64_t pid);

/* Is a file system of this type mounted anywhere? */
bool mw_root_is_mounted(const struct mw_cli *cli, const char *type);

#endif
