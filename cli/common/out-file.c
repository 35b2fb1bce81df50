// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Opens output files.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/message.h"
#include "common/out-file.h"

/* What has the name of the output file. */
enum existing {
	NOTHING,
	REPLACEABLE, /* an empty file of this user */
	FILE_EXISTS, /* a file or a symbolic link */
	FOLDER,
	STREAM,	 /* a pipe or a character device */
	FOREIGN, /* a pipe of another user, who would read everything */
	UNUSABLE,
};

static enum existing look_up(const char *path, int *err)
{
	struct stat st;

	*err = 0;
	if (lstat(path, &st)) {
		*err = errno == ENOENT ? 0 : -errno;
		return NOTHING;
	}
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return !st.st_size && st.st_uid == geteuid() && st.st_nlink == 1 ? REPLACEABLE
										 : FILE_EXISTS;
	case S_IFLNK:
		return FILE_EXISTS;
	case S_IFDIR:
		return FOLDER;
	case S_IFIFO:
		return st.st_uid == geteuid() || !st.st_uid ? STREAM : FOREIGN;
	case S_IFCHR:
		return STREAM;
	default:
		return UNUSABLE;
	}
}

static int report_existing_file(const char *path)
{
	mw_error(MW_EXIT_FAILED, path, "the file exists");
	mw_hint("--force replaces the file");
	return MW_EXIT_FAILED;
}

static int report_unusable(enum existing existing, const char *path)
{
	switch (existing) {
	case FOLDER:
		return mw_error_errno(-EISDIR, path);
	case FOREIGN:
		return mw_error(MW_EXIT_FAILED, path, "is a pipe of another user");
	default:
		return mw_error(MW_EXIT_FAILED, path,
				"is neither a file nor a pipe nor a character device");
	}
}

/* ------------------------------------------------------------------ opening */

/* "-" and the names of open descriptors: these are not looked up in a folder. */
static int named_descriptor(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };
	char *end;
	long fd;

	if (!strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		size_t len = strlen(folders[i]);

		if (strncmp(path, folders[i], len) || !path[len])
			continue;
		fd = strtol(path + len, &end, 10);
		return *end || fd < 0 || fd > INT32_MAX ? -1 : (int)fd;
	}
	return -1;
}

/* Opens a pipe or a character device, which may be another one by now. */
static int open_stream(const char *path)
{
	int fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode)))
		return fd;
	close(fd);
	return -EINVAL;
}

/* Removes the file if it has not got its name. */
static void drop_unnamed(struct mw_out_file *out)
{
	memwatch_file_close(out->unnamed);
	out->unnamed = NULL;
}

/*
 * A file that is replaced keeps its content for who has it open. Returns 0, or an exit code after
 * an error message.
 */
static int give_name(struct mw_out_file *out)
{
	int err = memwatch_file_commit(out->unnamed, out->replace ? MEMWATCH_FILE_REPLACE : 0);

	drop_unnamed(out);
	if (!err)
		return 0;
	return err == -EEXIST ? report_existing_file(out->path) : mw_error_errno(err, out->path);
}

static int create_file(struct mw_out_file *out, struct memwatch_ctx *ctx, bool replace)
{
	int fd, err = memwatch_file_create(ctx, out->path, &out->unnamed);

	if (err)
		return err;
	out->replace = replace;
	fd = fcntl(memwatch_file_fd(out->unnamed), F_DUPFD_CLOEXEC, 0);
	if (fd >= 0)
		return fd;
	err = -errno;
	drop_unnamed(out);
	return err;
}

/* Returns a descriptor, or -1 after an error message, with the exit code in *@rc. */
static int open_path(struct mw_out_file *out, struct memwatch_ctx *ctx, bool force, int *rc)
{
	const char *path = out->path;
	enum existing existing;
	int fd, err;

	existing = look_up(path, &err);
	if (existing == FILE_EXISTS && !force) {
		*rc = report_existing_file(path);
		return -1;
	}
	if (existing == FOLDER || existing == FOREIGN || existing == UNUSABLE) {
		*rc = report_unusable(existing, path);
		return -1;
	}
	out->sync = existing != STREAM;
	if (err)
		fd = err;
	else if (existing == STREAM)
		fd = open_stream(path);
	else
		fd = create_file(out, ctx, existing != NOTHING);
	if (fd < 0)
		*rc = mw_error_errno(fd, path);
	return fd < 0 ? -1 : fd;
}

int mw_out_file_begin(struct mw_out_file *out, struct memwatch_ctx *ctx, const char *path,
		      bool force)
{
	int rc = 0, fd;

	*out = (struct mw_out_file){ .stream = stdout, .path = path };
	if (!path || !strcmp(path, "-"))
		return 0;
	out->stream = NULL;
	fd = named_descriptor(path);
	if (fd >= 0) {
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			return mw_error_errno(-errno, path);
	} else {
		fd = open_path(out, ctx, force, &rc);
		if (fd < 0)
			return rc;
	}
	out->stream = fdopen(fd, "w");
	if (out->stream)
		return 0;
	rc = mw_error_errno(-errno, path);
	close(fd);
	drop_unnamed(out);
	return rc;
}

int mw_out_file_open(struct mw_out_file *out, struct memwatch_ctx *ctx, const char *path,
		     bool force)
{
	int rc = mw_out_file_begin(out, ctx, path, force);

	if (rc || !out->unnamed)
		return rc;
	rc = give_name(out);
	if (rc)
		mw_out_file_abandon(out);
	return rc;
}

static bool is_one_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The folder of a path, and where its last name begins. */
static const char *split_path(const char *path, char *folder, size_t size)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		snprintf(folder, size, ".");
	else
		snprintf(folder, size, "%.*s", slash > path ? (int)(slash - path) : 1, path);
	return slash ? slash + 1 : path;
}

bool mw_out_file_is(const char *path, const char *other)
{
	char folder[PATH_MAX], other_folder[PATH_MAX];
	const char *name = split_path(path, folder, sizeof(folder));
	const char *other_name = split_path(other, other_folder, sizeof(other_folder));

	if (!strcmp(path, "-"))
		return false; /* standard output */
	return is_one_file(path, other) ||
	       (!strcmp(name, other_name) && is_one_file(folder, other_folder));
}

bool mw_out_file_is_stdout(const char *path)
{
	return !strcmp(path, "-") || named_descriptor(path) == STDOUT_FILENO;
}

int mw_out_file_flush(struct mw_out_file *out)
{
	bool failed = ferror(out->stream);

	if (out->stream == stdout)
		return 0; /* standard output is checked at the end of the command */
	errno = 0;
	if (fflush(out->stream) || failed)
		return mw_error(MW_EXIT_FAILED, out->path, "%s",
				errno ? strerror(errno) : "could not be written");
	return 0;
}

int mw_out_file_close(struct mw_out_file *out)
{
	FILE *stream = out->stream;
	bool failed;

	out->stream = NULL;
	if (!stream || stream == stdout)
		return 0; /* standard output is checked at the end of the command */
	failed = ferror(stream);
	errno = 0;
	failed |= fflush(stream) || (out->sync && !out->unnamed && fsync(fileno(stream)));
	if (fclose(stream) || failed) {
		mw_error(MW_EXIT_FAILED, out->path, "%s",
			 errno ? strerror(errno) : "could not be written");
		drop_unnamed(out);
		return MW_EXIT_FAILED;
	}
	return out->unnamed ? give_name(out) : 0;
}

void mw_out_file_abandon(struct mw_out_file *out)
{
	drop_unnamed(out);
	clearerr(out->stream);
	mw_out_file_close(out);
}

int mw_out_file_check(struct memwatch_ctx *ctx, const char *path, bool force, bool *replace)
{
	int err;
	enum existing existing = look_up(path, &err);
	struct memwatch_file *file;

	*replace = existing == REPLACEABLE || existing == FILE_EXISTS;
	if (err)
		return mw_error_errno(err, path);
	/* The name of a descriptor is a symbolic link of the system, which --force would replace.
	 */
	if (existing == STREAM || named_descriptor(path) >= 0)
		return mw_error(MW_EXIT_FAILED, path, "is not a regular file");
	if (existing == FILE_EXISTS && !force)
		return report_existing_file(path);
	if (existing == FOLDER || existing == FOREIGN || existing == UNUSABLE)
		return report_unusable(existing, path);
	/* There may be no folder, or nothing can be created in it. */
	err = memwatch_file_create(ctx, path, &file);
	if (err)
		return mw_error_errno(err, path);
	memwatch_file_close(file);
	return 0;
}
