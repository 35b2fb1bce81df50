// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Opens files for the owner of a profile: regular files, in the root directory of the process, that
 * the owner may read. The path comes from the profile or the process, so symbolic links in it do
 * not lead out of that directory, and nothing is opened whose opening has an effect.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memwatch/heap-process.h>

#include "heap/owner-file.h"
#include "heap/perf-map.h"
#include "base/context.h"

/* The directory in which the paths of @owner are, also if symbolic links are among them. */
static int open_root(struct memwatch_ctx *ctx, const struct memwatch_heap_owner *owner)
{
	char name[32] = "/", *path = NULL;
	int fd;

	if (owner->root && *owner->root)
		return open(owner->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (owner->pid)
		snprintf(name, sizeof(name), "/proc/%u/root", owner->pid);
	if (mw_ctx_path(ctx, name, &path))
		return -1;
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	free(path);
	return fd;
}

/* A regular file that an O_PATH descriptor is for, opened for reading. Fills in @st. */
static int open_regular(int at, struct stat *st)
{
	char name[32];

	/* Opening anything else could have an effect: on a tape, or on who reads a pipe. */
	if (fstat(at, st) || !S_ISREG(st->st_mode))
		return -1;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", at);
	return open(name, O_RDONLY | O_CLOEXEC);
}

/* Opens a regular file as its owner would. @flags: O_NOFOLLOW or 0. Returns a descriptor or -1. */
static int open_as_owner(struct memwatch_ctx *ctx, const struct memwatch_heap_owner *owner,
			 const char *path, unsigned int flags, struct stat *st)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | flags, .resolve = RESOLVE_IN_ROOT };
	int root = open_root(ctx, owner), at, fd, gid, uid;

	/* These calls do not fail for root; and if they did, the file would belong to the caller.
	 */
	gid = setfsgid(owner->gid);
	uid = setfsuid(owner->uid);
	at = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	fd = at < 0 ? -1 : open_regular(at, st);
	setfsuid((uid_t)uid);
	setfsgid((gid_t)gid);
	if (at >= 0)
		close(at);
	if (root >= 0)
		close(root);
	return fd;
}

/* The number by which a process knows itself: in the innermost name space. 0: it has ended. */
static uint32_t find_own_pid(struct memwatch_ctx *ctx, uint32_t pid)
{
	char name[32], line[256], *path = NULL;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%u/status", pid);
	file = mw_ctx_path(ctx, name, &path) ? NULL : fopen(path, "re");
	free(path);
	if (!file)
		return 0;
	/* The last number of the line, which a kernel without name spaces does not have. */
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, "NStgid:", 7))
			pid = (uint32_t)strtoul(strrchr(line, '\t'), NULL, 10);
	fclose(file);
	return pid;
}

char *mw_owner_perf_map_path(struct memwatch_ctx *ctx, uint32_t pid)
{
	uint32_t own = find_own_pid(ctx, pid);

	return own ? mw_perf_map_path("", own) : NULL;
}

/* Whether this is where a runtime writes a file for perf, in the process if there is one. */
static bool is_perf_map(struct memwatch_ctx *ctx, const struct memwatch_heap_owner *owner,
			const char *path)
{
	char digits[11], *expected = NULL;
	bool is;

	if (owner->pid)
		expected = mw_owner_perf_map_path(ctx, owner->pid);
	else if (sscanf(path, P_tmpdir "/perf-%10[0-9].map", digits) == 1)
		expected = mw_perf_map_path("", (uint32_t)strtoul(digits, NULL, 10));
	is = expected && !strcmp(path, expected);
	free(expected);
	return is;
}

static int fail_closed(struct memwatch_ctx *ctx, const char *path)
{
	return mw_fail(ctx, -EACCES, "%s: its owner cannot read a regular file there", path);
}

int memwatch_heap_open_file(struct memwatch_ctx *ctx, const struct memwatch_heap_owner *user_owner,
			    const char *path)
{
	struct memwatch_heap_owner owner;
	int fd, err = mw_opts_copy(ctx, &owner, sizeof(owner), user_owner);
	struct stat st;

	if (err)
		return err;
	fd = open_as_owner(ctx, &owner, path, 0, &st);
	return fd < 0 ? fail_closed(ctx, path) : fd;
}

int memwatch_heap_open_perf_map(struct memwatch_ctx *ctx,
				const struct memwatch_heap_owner *user_owner, const char *path)
{
	struct memwatch_heap_owner owner;
	int fd, err = mw_opts_copy(ctx, &owner, sizeof(owner), user_owner);
	struct stat st;

	if (err)
		return err;
	if (!is_perf_map(ctx, &owner, path))
		return mw_fail(ctx, -EINVAL, "%s is not a map for perf of the process", path);
	fd = open_as_owner(ctx, &owner, path, O_NOFOLLOW, &st);
	if (fd < 0 || !st.st_uid || st.st_uid == owner.uid)
		return fd < 0 ? fail_closed(ctx, path) : fd;
	close(fd);
	return fail_closed(ctx, path);
}
