/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the library adds to <memwatch/file.h> for itself: removing files that a dead writer
 * left behind, and opening files that only a trusted user can have written.
 */
#ifndef MW_BASE_SAFE_FILE_H
#define MW_BASE_SAFE_FILE_H

#include <stdbool.h>

#include <memwatch/file.h>

/**
 * struct memwatch_file - see <memwatch/file.h>
 * @ctx: context, a reference
 * @fd: open for reading and writing
 * @dir: the folder
 * @path: as the caller gave it, for messages
 * @name: the last component of @path
 * @temporary: name of the file until it is committed
 * @committed: the file has its final name
 */
struct memwatch_file {
	struct memwatch_ctx *ctx;
	int fd;
	int dir;
	char *path;
	const char *name;
	char *temporary;
	bool committed;
};

/* Flags of mw_safe_open_read(). */
#define MW_SAFE_TRUSTED (1U << 0)

/*
 * Opens a regular file for reading; does not wait for the writer of a FIFO. With
 * MW_SAFE_TRUSTED it also refuses, with -EPERM, what another user could have written: a
 * symbolic link, a file of another user than this one and root, a file that group or
 * others may write to, and a file with further names. Returns 0 or a negative errno.
 */
int mw_safe_open_read(struct memwatch_ctx *ctx, const char *path, unsigned int flags, int *ret_fd);

#endif /* MW_BASE_SAFE_FILE_H */
