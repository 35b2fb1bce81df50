/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Creating and opening files in folders that other users may write to. A new file begins
 * under a temporary name that nobody can guess, in the folder of its final name, and gets
 * that name when it is complete. No symbolic link is followed at either name, and nothing
 * that exists is ever written to.
 */
#ifndef MW_BASE_SAFE_FILE_H
#define MW_BASE_SAFE_FILE_H

#include <stdbool.h>

#include <memwatch/ctx.h>

/**
 * struct mw_safe_file - a file that is being created
 * @ctx: context, a reference
 * @fd: open for reading and writing; duplicate it for stdio
 * @dir: the folder
 * @path: as the caller gave it, for messages
 * @name: the last component of @path
 * @temporary: name of the file until it is committed
 * @committed: the file has its final name
 */
struct mw_safe_file {
	struct memwatch_ctx *ctx;
	int fd;
	int dir;
	char *path;
	const char *name;
	char *temporary;
	bool committed;
};

/* Flags of mw_safe_commit(). */
#define MW_SAFE_REPLACE (1U << 0) /* replaces a file that has the final name */

/* Flags of mw_safe_open_read(). */
#define MW_SAFE_TRUSTED (1U << 0) /* see mw_safe_open_read() */

/*
 * Creates a file for @path with mode 0600, under a temporary name in the same folder.
 * Returns 0 or a negative errno. The caller frees with mw_safe_close().
 */
int mw_safe_create(struct memwatch_ctx *ctx, const char *path, struct mw_safe_file **ret);

/*
 * Writes the file to the disk and gives it its final name. Without MW_SAFE_REPLACE it
 * fails with -EEXIST if that name is in use. The descriptor stays open.
 */
int mw_safe_commit(struct mw_safe_file *file, unsigned int flags);

/* Closes and frees @file, which may be NULL. A file that was not committed is removed. */
void mw_safe_close(struct mw_safe_file *file);

/*
 * Removes temporary files for @path whose writer has ended without removing them. Only
 * files of this user that no process has locked are removed.
 */
void mw_safe_remove_stale(const char *path);

/*
 * Opens a regular file for reading; does not wait for the writer of a FIFO. With
 * MW_SAFE_TRUSTED it also refuses, with -EPERM, what another user could have written: a
 * symbolic link, a file of another user than this one and root, a file that group or
 * others may write to, and a file with further names. Returns 0 or a negative errno.
 */
int mw_safe_open_read(struct memwatch_ctx *ctx, const char *path, unsigned int flags, int *ret_fd);

#endif /* MW_BASE_SAFE_FILE_H */
