/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Files whose names appear when they are complete.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "new-file.h"

#define FILE_MODE  0600
#define NEW_SUFFIX ".new"

/* Programs in containers have the same few process ids with each start. */
#define NAMES_TRIED 10000

/* Returns @fd, or a negative errno if nothing can be known about it. */
static int identity_find(int fd, struct mw_new_file *file)
{
	struct stat st;
	int rc;

	if (fstat(fd, &st)) {
		rc = -errno;
		unlink(file->path);
		close(fd);
		return rc;
	}
	file->device = st.st_dev;
	file->inode = st.st_ino;
	return fd;
}

int mw_new_file_create(mw_new_file_name *name, const char *stem, struct mw_new_file *file)
{
	for (uint32_t n = 0; n < NAMES_TRIED; n++) {
		int fd;

		name(file->path, sizeof(file->path) - strlen(NEW_SUFFIX), stem, n);
		strcat(file->path, NEW_SUFFIX);
		fd = open(file->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			  FILE_MODE);
		if (fd >= 0)
			return identity_find(fd, file);
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

int mw_new_file_reopen(const struct mw_new_file *file)
{
	struct stat st;
	int fd = open(file->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || st.st_dev != file->device || st.st_ino != file->inode) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

/* As rename(), but fails with -EEXIST if @to is in use. */
static int rename_to_new(const char *from, const char *to)
{
	if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* Some file systems, such as NFS, cannot do this in one step. */
	if (link(from, to))
		return -errno;
	unlink(from);
	return 0;
}

int mw_new_file_publish(mw_new_file_name *name, const char *stem, struct mw_new_file *file)
{
	char published[MW_NEW_FILE_PATH_MAX];
	int rc = -EEXIST;

	for (uint32_t n = 0; n < NAMES_TRIED && rc == -EEXIST; n++) {
		name(published, sizeof(published), stem, n);
		rc = rename_to_new(file->path, published);
	}
	if (!rc)
		strcpy(file->path, published);
	return rc;
}
