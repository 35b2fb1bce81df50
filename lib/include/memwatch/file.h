/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Creating files in folders that other users may write to. A new file begins under a temporary
 * name that nobody can guess, in the folder of its final name, and gets that name when it is
 * committed. No symbolic link is followed at either name, and nothing that exists is ever
 * written to. The library creates recordings and state files in this way.
 */
#ifndef MEMWATCH_FILE_H
#define MEMWATCH_FILE_H

#include <memwatch/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct memwatch_file - a file that is being created
 *
 * It holds a reference on its context, and a lock (flock(2)) on the file, which tells it from
 * one that a dead writer left behind.
 */
struct memwatch_file;

/* Flags of memwatch_file_commit(). */
#define MEMWATCH_FILE_REPLACE (1U << 0) /* replaces a file that has the final name */

/**
 * memwatch_file_create() - create a file under a temporary name
 * @ctx: context
 * @path: final name of the file
 * @ret: receives the file; close it with memwatch_file_close()
 *
 * The file is readable and writable by its owner only (mode 0600). Temporary files for @path whose
 * writers have ended without closing them are removed.
 *
 * Return: 0; -EISDIR if @path ends with a slash; -ENOMEM, or the error of open(2).
 * Since: 0.1
 */
int memwatch_file_create(struct memwatch_ctx *ctx, const char *path, struct memwatch_file **ret);

/**
 * memwatch_file_fd() - the descriptor of a file
 * @file: file
 *
 * Return: a descriptor that is open for reading and writing until memwatch_file_close().
 * Duplicate it if something else is to close it, such as stdio.
 * Since: 0.1
 */
int memwatch_file_fd(const struct memwatch_file *file);

/**
 * memwatch_file_commit() - give a file its final name
 * @file: file
 * @flags: MEMWATCH_FILE_REPLACE or 0
 *
 * What has been written is on the disk before the file gets its name. More can be written
 * afterwards, because the descriptor stays open.
 *
 * Return: 0; -EEXIST if the name is in use and is not to be replaced; -EISDIR or -EINVAL if it is
 * that of a folder, or of a device or a FIFO, which is never replaced; or another negative errno.
 * Since: 0.1
 */
MEMWATCH_MUST_CHECK int memwatch_file_commit(struct memwatch_file *file, unsigned int flags);

/**
 * memwatch_file_close() - close and free a file
 * @file: file, or NULL; if it was not committed, it is removed
 *
 * Since: 0.1
 */
void memwatch_file_close(struct memwatch_file *file);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_FILE_H */
