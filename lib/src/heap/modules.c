// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Opens the files that a process has mapped and can execute. They are opened by their mappings,
 * which also works if the process is in a container or a file was replaced.
 */
#include "heap/modules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memwatch/heap-process.h>

#include "heap/process.h"
#include "base/context.h"
#include "base/text.h"

static bool is_module(const struct mw_process_mapping *mapping)
{
	return strchr(mapping->permissions, 'x') && *mapping->path == '/';
}

/* Takes the mapping of a line of maps if it is one of a program or a library. */
static bool take_mapping(struct mw_text line, struct mw_process_mapping *ret)
{
	if (!mw_process_mapping_parse(line, ret) || !is_module(ret))
		return false;
	ret->path[mw_process_mapping_path_len(ret)] = '\0';
	return true;
}

bool mw_modules_add(struct mw_modules *modules, const char *path, int fd)
{
	char *copy = modules->nr == MW_MODULES_MAX ? NULL : strdup(path);

	if (!copy)
		return false;
	modules->paths[modules->nr] = copy;
	modules->fds[modules->nr++] = fd;
	return true;
}

static void add_module(struct memwatch_ctx *ctx, uint32_t pid, struct mw_modules *modules,
		       const struct mw_process_mapping *mapping)
{
	struct stat st;
	int fd;

	if (modules->nr == MW_MODULES_MAX || mw_modules_find(modules, mapping->path) >= 0)
		return;
	fd = mw_process_mapping_open(ctx, pid, mapping, false);
	if (fd < 0)
		return;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !mw_modules_add(modules, mapping->path, fd))
		close(fd);
}

void mw_modules_open(struct memwatch_ctx *ctx, uint32_t pid, struct mw_modules *ret)
{
	struct mw_process_mapping mapping;
	struct mw_text rest, line;
	char path[64], *text;
	size_t len;

	*ret = (struct mw_modules){ 0 };
	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	if (mw_text_read_file(ctx, path, &text, &len))
		return;
	rest = (struct mw_text){ text, len };
	while (mw_text_take(&rest, '\n', &line))
		if (take_mapping(line, &mapping))
			add_module(ctx, pid, ret, &mapping);
	free(text);
}

void mw_modules_close(struct mw_modules *modules)
{
	while (modules->nr) {
		close(modules->fds[--modules->nr]);
		free(modules->paths[modules->nr]);
	}
}

int mw_modules_find(const struct mw_modules *modules, const char *path)
{
	for (uint32_t i = 0; i < modules->nr; i++)
		if (!strcmp(modules->paths[i], path))
			return modules->fds[i];
	return -1;
}

/* Whether it is a mapping of the program or library at the path @data. */
static bool is_module_at(const struct mw_process_mapping *mapping, const void *data)
{
	size_t len = mw_process_mapping_path_len(mapping);
	const char *path = data;

	return is_module(mapping) && strlen(path) == len && !memcmp(mapping->path, path, len);
}

int memwatch_heap_open_module(struct memwatch_ctx *ctx, __u32 pid, const char *path)
{
	struct mw_process_mapping mapping;
	int err = mw_process_mapping_find(ctx, pid, is_module_at, path, &mapping);

	if (err == -ENODATA)
		return mw_fail(ctx, -ENOENT, "process %u has not mapped %s", pid, path);
	if (err)
		return err;
	err = mw_process_mapping_open(ctx, pid, &mapping, false);
	return err < 0 ? mw_fail(ctx, err, "%s: %s", path, strerror(-err)) : err;
}
