// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Files of the kernel, below the directory that --root names.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "common/root.h"

const char *mw_root_path(const struct mw_cli *cli, const char *path, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s", cli->root ? cli->root : "", path);
	return buf;
}

FILE *mw_root_open(const struct mw_cli *cli, const char *path)
{
	char full[PATH_MAX];

	return fopen(mw_root_path(cli, path, full, sizeof(full)), "re");
}

int mw_root_line(const struct mw_cli *cli, const char *path, char *buf, size_t size)
{
	FILE *file = mw_root_open(cli, path);
	int rc = 0;

	buf[0] = '\0';
	if (!file)
		return -errno;
	if (!fgets(buf, (int)size, file) && ferror(file))
		rc = -EIO;
	fclose(file);
	if (rc)
		buf[0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return rc ?: (int)strlen(buf);
}

int mw_root_access(const struct mw_cli *cli, const char *path, int mode)
{
	char full[PATH_MAX];

	return access(mw_root_path(cli, path, full, sizeof(full)), mode) ? -errno : 0;
}

uint64_t mw_root_start_ticks(const struct mw_cli *cli, uint64_t pid)
{
	char path[64], line[1024], *p;
	uint64_t ticks = 0;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/stat", pid);
	if (mw_root_line(cli, path, line, sizeof(line)) <= 0)
		return 0;
	/* Field 2, the name in parentheses, may contain any character. */
	p = strrchr(line, ')');
	for (int i = 2; p && i < 22; i++)
		p = strchr(p + 1, ' ');
	if (!p || sscanf(p, " %" SCNu64, &ticks) != 1)
		return 0;
	return ticks;
}

bool mw_root_is_mounted(const struct mw_cli *cli, const char *type)
{
	FILE *file = mw_root_open(cli, "/proc/self/mounts");
	char line[1024], seen[64];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%*s %*s %63s", seen) == 1 && !strcmp(seen, type);
	if (file)
		fclose(file);
	return found;
}
