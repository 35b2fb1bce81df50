// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads perf-PID.map: lines "START SIZE NAME" with hexadecimal numbers. A runtime appends
 * to the file, so a later line replaces an earlier one at the same place.
 */
#include "heap/perf-map.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file-io.h"

/* Runtimes write far less. */
#define MAX_BYTES (64UL << 20)

struct mw_perf_map {
	struct map_entry {
		uint64_t start, size;
		size_t name; /* offset in @text */
		size_t line;
	} * entries;
	size_t count, capacity;
	char *text;
};

char *mw_perf_map_path(const char *sysroot, uint32_t pid)
{
	char *path;

	return asprintf(&path, "%s" P_tmpdir "/perf-%u.map", sysroot, pid) < 0 ? NULL : path;
}

static int compare_entries(const void *a, const void *b)
{
	const struct map_entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

static char *read_text(int fd, uid_t owner)
{
	char *text = NULL;
	struct stat st;
	ssize_t n;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && (!st.st_uid || st.st_uid == owner) &&
	    (size_t)st.st_size <= MAX_BYTES)
		text = malloc((size_t)st.st_size + 1);
	if (text) {
		n = mw_file_read_at(fd, text, (size_t)st.st_size, 0);
		text[n > 0 ? n : 0] = 0;
	}
	return text;
}

static int parse_line(struct mw_perf_map *map, char *line, size_t number)
{
	struct map_entry entry = { .line = number };
	char *end;

	entry.start = strtoull(line, &end, 16);
	if (end == line || *end != ' ')
		return 0;
	line = end + 1;
	entry.size = strtoull(line, &end, 16);
	if (end == line || *end != ' ')
		return 0;
	entry.name = (size_t)(end + 1 - map->text);
	if (mw_array_reserve(map->entries, map->capacity, map->count + 1))
		return -ENOMEM;
	map->entries[map->count++] = entry;
	return 0;
}

struct mw_perf_map *mw_perf_map_open(int fd, const char *path, uid_t owner)
{
	struct mw_perf_map *map = calloc(1, sizeof(*map));
	int own = fd < 0 ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
	size_t number = 0;
	char *rest, *line;

	if (map)
		map->text = read_text(fd < 0 ? own : fd, owner);
	if (own >= 0)
		close(own);
	if (!map)
		return NULL;
	rest = map->text;
	while (rest && (line = strsep(&rest, "\n")))
		if (parse_line(map, line, number++))
			break;
	if (map->count) {
		qsort(map->entries, map->count, sizeof(*map->entries), compare_entries);
		return map;
	}
	mw_perf_map_close(map);
	return NULL;
}

void mw_perf_map_close(struct mw_perf_map *map)
{
	if (!map)
		return;
	free(map->entries);
	free(map->text);
	free(map);
}

const char *mw_perf_map_find(const struct mw_perf_map *map, uint64_t address)
{
	size_t low = 0, high = map->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->entries[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - map->entries[low - 1].start >= map->entries[low - 1].size)
		return NULL;
	return map->text + map->entries[low - 1].name;
}
