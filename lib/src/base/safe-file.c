// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The temporary name is ".NAME.", 16 random hexadecimal digits and ".tmp". The writer holds
 * a lock (flock) on the file, which ends with the process, so a temporary file without a
 * lock is one that its writer left behind.
 */
#include "base/safe-file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/context.h"

#define RANDOM_DIGITS 16
#define SUFFIX	      ".tmp"
#define ATTEMPTS      16

/* Somebody else may fill the folder: no more entries than this are looked at. */
#define ENTRIES_MAX 10000

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Opens the folder that @path is in. Returns a descriptor or a negative errno. */
static int open_folder(const char *path)
{
	size_t len = (size_t)(last_component(path) - path);
	char *folder = len ? strndup(path, len) : strdup(".");
	int fd;

	if (!folder)
		return -ENOMEM;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = fd < 0 ? -errno : fd;
	free(folder);
	return fd;
}

static int choose_temporary(struct memwatch_file *file)
{
	uint64_t number;

	free(file->temporary);
	file->temporary = NULL;
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -EIO;
	if (asprintf(&file->temporary, ".%s.%0*" PRIx64 SUFFIX, file->name, RANDOM_DIGITS, number) <
	    0) {
		file->temporary = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* Returns 0, -EAGAIN if another name has to be tried, or another negative errno. */
static int create_temporary(struct memwatch_file *file)
{
	struct stat st;
	int err = choose_temporary(file);

	if (err)
		return err;
	file->fd = openat(file->dir, file->temporary,
			  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file->fd < 0)
		return errno == EEXIST ? -EAGAIN : -errno;
	/* Fails if the file system has no locks; then no file is ever considered stale. */
	flock(file->fd, LOCK_EX | LOCK_NB);
	/* Did remove_stale() of another process lock and remove it just before? */
	if (!fstat(file->fd, &st) && st.st_nlink)
		return 0;
	close(file->fd);
	file->fd = -1;
	return -EAGAIN;
}

/* Is @entry the name of a temporary file for @name? */
static bool is_temporary(const char *entry, const char *name)
{
	size_t len = strlen(name);

	return entry[0] == '.' && !strncmp(entry + 1, name, len) && entry[1 + len] == '.' &&
	       strspn(entry + len + 2, "0123456789abcdef") == RANDOM_DIGITS &&
	       !strcmp(entry + len + 2 + RANDOM_DIGITS, SUFFIX);
}

static void remove_if_stale(int dir, const char *entry)
{
	int fd = openat(dir, entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    !flock(fd, LOCK_EX | LOCK_NB))
		unlinkat(dir, entry, 0);
	close(fd);
}

/* Removes what processes of this user that have ended have left of the same file. */
static void remove_stale(const struct memwatch_file *file)
{
	int fd = openat(file->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), left = ENTRIES_MAX;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	while (dir && left-- && (entry = readdir(dir)))
		if (is_temporary(entry->d_name, file->name))
			remove_if_stale(fd, entry->d_name);
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}

int memwatch_file_create(struct memwatch_ctx *ctx, const char *path, struct memwatch_file **ret)
{
	struct memwatch_file *file = calloc(1, sizeof(*file));
	int err = -EAGAIN;

	if (!file)
		return mw_fail_memory(ctx, path);
	file->ctx = memwatch_ctx_ref(ctx);
	file->fd = file->dir = -1;
	file->path = strdup(path);
	if (!file->path) {
		memwatch_file_close(file);
		return mw_fail_memory(ctx, path);
	}
	file->name = last_component(file->path);
	if (!file->name[0])
		err = -EISDIR;
	else
		file->dir = open_folder(path);
	if (file->name[0] && file->dir < 0)
		err = file->dir;
	for (int i = 0; err == -EAGAIN && i < ATTEMPTS; i++)
		err = create_temporary(file);
	if (err) {
		mw_fail(ctx, err, "%s: cannot be created: %s", path, strerror(-err));
		memwatch_file_close(file);
		return err;
	}
	remove_stale(file);
	*ret = file;
	return 0;
}

int memwatch_file_fd(const struct memwatch_file *file)
{
	return file->fd;
}

/* As renameat(), but fails with EEXIST if @name is in use. */
static int rename_to_new(int dir, const char *temporary, const char *name)
{
	if (!renameat2(dir, temporary, dir, name, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* Some file systems, such as NFS, cannot do this in one step. */
	if (linkat(dir, temporary, dir, name, 0))
		return -errno;
	unlinkat(dir, temporary, 0);
	return 0;
}

/*
 * Renaming would replace a device or a FIFO too, and root may do so in any folder. A symbolic link
 * is replaced, not followed.
 */
static int check_replaced(const struct memwatch_file *file)
{
	struct stat st;

	if (fstatat(file->dir, file->name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) ? 0 : -EINVAL;
}

int memwatch_file_commit(struct memwatch_file *file, unsigned int flags)
{
	int err = flags & MEMWATCH_FILE_REPLACE ? check_replaced(file) : 0;

	if (err == -EINVAL)
		return mw_fail(file->ctx, err, "%s: is not a regular file, and is not replaced",
			       file->path);
	if (!err && fsync(file->fd))
		err = -errno;
	if (!err && flags & MEMWATCH_FILE_REPLACE)
		err = renameat(file->dir, file->temporary, file->dir, file->name) ? -errno : 0;
	else if (!err)
		err = rename_to_new(file->dir, file->temporary, file->name);
	if (err)
		return mw_fail(file->ctx, err, "%s: cannot be written: %s", file->path,
			       strerror(-err));
	file->committed = true;
	/* Errors are ignored: the file is complete, and some file systems cannot do this. */
	fsync(file->dir);
	return 0;
}

void memwatch_file_close(struct memwatch_file *file)
{
	if (!file)
		return;
	if (file->fd >= 0) {
		if (!file->committed)
			unlinkat(file->dir, file->temporary, 0);
		close(file->fd);
	}
	if (file->dir >= 0)
		close(file->dir);
	memwatch_ctx_unref(file->ctx);
	free(file->temporary);
	free(file->path);
	free(file);
}

/* Why a file cannot be trusted, or NULL. */
static const char *distrust_reason(const struct stat *st)
{
	if (st->st_uid != geteuid() && st->st_uid)
		return "belongs to another user";
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return "can be written by its group or by others";
	if (st->st_nlink != 1)
		return "has more than one name";
	return NULL;
}

int mw_safe_open_read(struct memwatch_ctx *ctx, const char *path, unsigned int flags, int *ret_fd)
{
	bool trusted = flags & MW_SAFE_TRUSTED;
	const char *reason = NULL;
	struct stat st;
	int fd, err = 0;

	/* O_NONBLOCK: opening a FIFO would wait for its writer. Regular files ignore it. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (trusted ? O_NOFOLLOW : 0));
	if (fd < 0 && errno == ELOOP && trusted)
		return mw_fail(ctx, -EPERM, "%s: is refused, because it is a symbolic link", path);
	if (fd < 0)
		return mw_fail(ctx, -errno, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st))
		err = mw_fail(ctx, -errno, "%s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		err = mw_fail(ctx, S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL,
			      "%s: is not a regular file", path);
	else if (trusted)
		reason = distrust_reason(&st);
	if (reason)
		err = mw_fail(ctx, -EPERM, "%s: is refused, because it %s", path, reason);
	if (err) {
		close(fd);
		return err;
	}
	*ret_fd = fd;
	return 0;
}
