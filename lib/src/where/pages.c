// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What was given back has not leaked: memory for an answer that was sent is touched first by who
 * makes answers, however small the leak beside it.
 */
#include "where/pages.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/context.h"
#include "base/text.h"
#include "heap/process.h"

/* Bits of an entry of /proc/PID/pagemap. */
#define PRESENT	 (1ULL << 63)
#define SWAPPED	 (1ULL << 62)
#define NOT_ANON (1ULL << 61) /* a page of a file, or shared memory */

#define PAGE	 4096

static uint64_t read_entry(int fd, uint64_t address)
{
	uint64_t entry = 0;

	if (pread(fd, &entry, sizeof(entry), (off_t)(address / PAGE * sizeof(entry))) !=
	    sizeof(entry))
		return 0;
	return entry;
}

/* What a file holds is no memory of the process, unless it shares it: then it may be a tmpfs. */
static bool is_memory(uint64_t entry, const struct mw_process_mapping *mapping)
{
	if (!(entry & (PRESENT | SWAPPED)))
		return false;
	return !(entry & NOT_ANON) || mapping->permissions[3] == 's';
}

static void check_mapping(int fd, const struct mw_process_mapping *mapping,
			  struct mw_where_sample *list, uint32_t nr, bool *kept)
{
	unsigned long long start, end;

	if (sscanf(mapping->range, "%llx-%llx", &start, &end) != 2)
		return;
	for (uint32_t i = 0; i < nr; i++)
		if (list[i].address >= start && list[i].address < end)
			kept[i] = is_memory(read_entry(fd, list[i].address), mapping);
}

void mw_where_drop_gone(struct memwatch_ctx *ctx, uint32_t pid, struct mw_where_sample *list,
			uint32_t nr)
{
	struct mw_process_mapping mapping;
	bool kept[MW_WHERE_MAX] = { false };
	char name[64], *path = NULL, *text = NULL;
	struct mw_text rest = { 0 }, line;
	int fd;

	snprintf(name, sizeof(name), "/proc/%u/pagemap", pid);
	fd = mw_ctx_path(ctx, name, &path) ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	snprintf(name, sizeof(name), "/proc/%u/maps", pid);
	if (fd >= 0 && !mw_text_read_file(ctx, name, &text, &rest.len)) {
		rest.at = text;
		while (mw_text_take(&rest, '\n', &line))
			if (mw_process_mapping_parse(line, &mapping))
				check_mapping(fd, &mapping, list, nr, kept);
		for (uint32_t i = 0; i < nr; i++)
			if (!kept[i])
				list[i].weight = 0;
	}
	free(text);
	if (fd >= 0)
		close(fd);
}
