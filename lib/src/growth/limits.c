// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads /proc/meminfo, and names the limits.
 */
#include "growth/limits.h"

#include <memwatch/watch.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/context.h"

uint64_t mw_limits_number(const char *text, const char *key)
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

int mw_limits_read_text(struct memwatch_ctx *ctx, const char *path, char *text, size_t size)
{
	char *full;
	ssize_t n = -1;
	int fd, err = mw_ctx_path(ctx, path, &full);

	if (err)
		return err;
	fd = open(full, O_RDONLY | O_CLOEXEC);
	free(full);
	if (fd >= 0) {
		n = read(fd, text, size - 1);
		close(fd);
	}
	if (n <= 0)
		return mw_fail(ctx, -ENOENT, "%s cannot be read", path);
	text[n] = '\0';
	return 0;
}

void mw_limits_parse_host(const char *text, struct mw_limits_host *ret)
{
	ret->swap_bytes = mw_limits_number(text, "SwapFree:") << 10;
	ret->headroom_bytes = (mw_limits_number(text, "MemAvailable:") << 10) + ret->swap_bytes;
}

int mw_limits_read_host(struct memwatch_ctx *ctx, struct mw_limits_host *ret)
{
	char text[4096];
	int err = mw_limits_read_text(ctx, "/proc/meminfo", text, sizeof(text));

	if (!err)
		mw_limits_parse_host(text, ret);
	return err;
}

const char *memwatch_watch_limit_name(unsigned int limit)
{
	switch (limit) {
	case MEMWATCH_LIMIT_HOST:
		return "the memory of the machine";
	case MEMWATCH_LIMIT_CGROUP_MAX:
		return "memory.max of its cgroup";
	case MEMWATCH_LIMIT_CGROUP_HIGH:
		return "memory.high of its cgroup";
	case MEMWATCH_LIMIT_DATA:
		return "RLIMIT_DATA";
	case MEMWATCH_LIMIT_AS:
		return "RLIMIT_AS";
	default:
		return "its limit";
	}
}
