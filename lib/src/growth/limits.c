// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads /proc/meminfo.
 */
#include "growth/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/context.h"

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

int mw_limits_read_host(struct memwatch_ctx *ctx, struct mw_limits_host *ret)
{
	char text[4096], *path;
	ssize_t n = -1;
	int fd, err = mw_ctx_path(ctx, "/proc/meminfo", &path);

	if (err)
		return err;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (n <= 0)
		return mw_fail(ctx, -ENOENT, "/proc/meminfo cannot be read");
	text[n] = '\0';
	ret->swap_bytes = find_number(text, "SwapFree:") << 10;
	ret->headroom_bytes = (find_number(text, "MemAvailable:") << 10) + ret->swap_bytes;
	return 0;
}
