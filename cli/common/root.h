/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Files of the kernel, such as those in /proc and /sys. All commands open them with
 * these functions, so that a test can replace them with --root.
 */
#ifndef MW_ROOT_H
#define MW_ROOT_H

#include "common/cmd.h"

/* Writes the path of a file below --root to @buf. Returns @buf. */
const char *mw_root_path(const struct mw_cli *cli, const char *path, char *buf, size_t size);

/* Opens a file for reading; the caller closes it. Returns NULL and sets errno on failure. */
FILE *mw_root_open(const struct mw_cli *cli, const char *path);

/*
 * Reads the first line of a file, without the newline and cut to @size. Returns the
 * length or a negative errno; @buf is then empty.
 */
int mw_root_line(const struct mw_cli *cli, const char *path, char *buf, size_t size);

/* Does what access(2) does. Returns 0 or a negative errno. */
int mw_root_access(const struct mw_cli *cli, const char *path, int mode);

/*
 * The time at which a process started, in clock ticks since boot. With it, a process
 * id that is used again can be told from its first use. Returns 0 if there is no such
 * process.
 */
uint64_t mw_root_start_ticks(const struct mw_cli *cli, uint64_t pid);

/* Returns whether a file system of this type is mounted anywhere. */
bool mw_root_is_mounted(const struct mw_cli *cli, const char *type);

#endif
