// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads limits from cgroupfs and /proc/meminfo. Memory that the kernel reclaims before
 * it kills does not count as used: reclaimable slab and the page cache of files, but not
 * tmpfs and shared memory, whose pages are on the anonymous LRU lists.
 */
#include "growth/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/memwatch.h>

#include "base/context.h"
#include "base/timemath.h"

/* Deeper than real hierarchies. The walk holds one file descriptor for each level. */
#define DEPTH_MAX 32

/* Reads the start of a file below @dir as a string, or "" if it cannot be read. */
static const char *read_start(int dir, const char *name, char *text, size_t size)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	text[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
	return text;
}

/* The number after @key at the start of a line, or 0 if there is no such line. */
static uint64_t find_number(const char *text, const char *key)
{
	size_t len = strlen(key);

	while (*text) {
		if (!strncmp(text, key, len))
			return strtoull(text + len, NULL, 10);
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return 0;
}

/* The number in a file. If the file holds "max" or does not exist: UINT64_MAX. */
static uint64_t read_number(int dir, const char *name)
{
	char text[32];

	read_start(dir, name, text, sizeof(text));
	return text[0] >= '0' && text[0] <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
}

int mw_limits_host_headroom(struct memwatch_ctx *ctx, uint64_t *ret_bytes)
{
	char text[4096], *path;
	int err = mw_ctx_path(ctx, "/proc/meminfo", &path);

	if (err)
		return err;
	read_start(AT_FDCWD, path, text, sizeof(text));
	free(path);
	if (!text[0])
		return mw_fail(ctx, -ENOENT, "/proc/meminfo cannot be read");
	*ret_bytes = (find_number(text, "MemAvailable:") + find_number(text, "SwapFree:")) << 10;
	return 0;
}

/* Bytes of swap that the cgroup may still use. */
static uint64_t read_swap_headroom(int dir, uint64_t host_swap)
{
	uint64_t max = read_number(dir, "memory.swap.max"), used;

	if (!max)
		return 0;
	used = read_number(dir, "memory.swap.current");
	if (used == UINT64_MAX) /* the kernel does not account swap */
		return 0;
	return mw_min_u64(host_swap, mw_sub_sat(max, used));
}

/* Makes @bound, of kind @kind, the nearest limit if it leaves less headroom. */
static void lower_limit(struct mw_limit *limit, uint64_t bound, uint64_t used, uint64_t swap,
			uint32_t kind)
{
	uint64_t headroom;

	if (bound == UINT64_MAX)
		return;
	headroom = mw_add_sat(mw_sub_sat(bound, used), swap);
	if (headroom >= limit->headroom_bytes)
		return;
	limit->headroom_bytes = headroom;
	limit->limit = kind;
}

/* @limit is the nearest limit of the parent, and becomes that of the cgroup. */
static void read_cgroup_limit(int dir, uint64_t host_swap, struct mw_limit *limit)
{
	uint64_t max = read_number(dir, "memory.max"), high = read_number(dir, "memory.high");
	uint64_t used, files, swap;
	char stat[8192];

	if (max == UINT64_MAX && high == UINT64_MAX)
		return;
	used = read_number(dir, "memory.current");
	if (used == UINT64_MAX)
		return;
	read_start(dir, "memory.stat", stat, sizeof(stat));
	files = find_number(stat, "inactive_file ") + find_number(stat, "active_file ") +
		find_number(stat, "slab_reclaimable ");
	used = mw_sub_sat(used, files);
	swap = read_swap_headroom(dir, host_swap);
	lower_limit(limit, max, used, swap, MEMWATCH_LIMIT_CGROUP_MAX);
	lower_limit(limit, high, used, swap, MEMWATCH_LIMIT_CGROUP_HIGH);
}

struct cgroup_walk {
	mw_limits_fn fn;
	void *userdata;
	uint64_t host_swap;
};

/* Walks the cgroup @dir, which is closed, and all below it. @limit is that of its parent. */
static int walk_cgroup(const struct cgroup_walk *walk, int dir, struct mw_limit limit, int depth)
{
	struct dirent *entry;
	struct stat st;
	int err = 0;
	DIR *list;

	read_cgroup_limit(dir, walk->host_swap, &limit);
	if (limit.limit != MEMWATCH_LIMIT_NONE && !fstat(dir, &st))
		err = walk->fn(walk->userdata, st.st_ino, &limit);
	list = fdopendir(dir);
	if (!list) {
		close(dir);
		return err;
	}
	while (!err && depth < DEPTH_MAX && (entry = readdir(list))) {
		int fd;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		fd = openat(dirfd(list), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			err = walk_cgroup(walk, fd, limit, depth + 1);
	}
	closedir(list);
	return err;
}

int mw_limits_walk_cgroups(struct memwatch_ctx *ctx, mw_limits_fn fn, void *userdata)
{
	static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	struct mw_limit limit = { .headroom_bytes = UINT64_MAX, .limit = MEMWATCH_LIMIT_NONE };
	struct cgroup_walk walk = { .fn = fn, .userdata = userdata };
	char text[4096], *path;
	int err, fd = -1;

	err = mw_ctx_path(ctx, "/proc/meminfo", &path);
	if (err)
		return err;
	walk.host_swap = find_number(read_start(AT_FDCWD, path, text, sizeof(text)), "SwapFree:")
			 << 10;
	free(path);
	for (unsigned int i = 0; fd < 0 && i < 2; i++) {
		err = mw_ctx_path(ctx, roots[i], &path);
		if (err)
			return err;
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* Only the unified hierarchy has this file. */
		if (fd >= 0 && faccessat(fd, "cgroup.controllers", F_OK, 0)) {
			close(fd);
			fd = -1;
		}
		free(path);
	}
	return fd < 0 ? 0 : walk_cgroup(&walk, fd, limit, 0);
}
