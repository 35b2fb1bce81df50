// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Finds the symbols of locations, in a confined child.
 */
#include "heap/symbol-find.h"

#include <stdio.h>
#include <stdlib.h>

#include "heap/perf-map.h"

char *mw_symbols_path(const struct mw_symbol_finder *finder, uint32_t mapping)
{
	const char *path = mw_strings_text(&finder->heap->strings,
					   finder->heap->mappings[mapping].path);
	char *full;

	if (*path != '/' || asprintf(&full, "%s%s", finder->sysroot ?: "", path) < 0)
		return NULL;
	return full;
}

char *mw_symbols_perf_map_path(const struct mw_symbol_finder *finder)
{
	uint32_t pid = finder->heap->profiles[0].info.pid;

	return pid ? mw_perf_map_path(finder->sysroot ?: "", pid) : NULL;
}

static struct mw_resolver *open_mapping(const struct mw_symbol_finder *finder, uint32_t mapping)
{
	const char *build_id = mw_strings_text(&finder->heap->strings,
					       finder->heap->mappings[mapping].build_id);
	char *path = mw_symbols_path(finder, mapping);
	int fd = path && finder->modules ? mw_modules_find(finder->modules, path) : -1;
	struct mw_resolver *resolver = mw_resolver_open(fd, path ?: "", build_id);

	if (!resolver && path && finder->unread)
		finder->unread(finder->data, mapping);
	free(path);
	return resolver;
}

static void resolve_location(const struct mw_symbol_finder *finder, struct mw_resolver *resolver,
			     uint32_t number)
{
	const struct mw_prof_location *location = &finder->heap->locations[number];
	const struct mw_prof_mapping *mapping = &finder->heap->mappings[location->mapping];
	struct mw_resolved lines[MW_RESOLVE_LINES];
	uint64_t address;
	uint32_t nr;

	if (mapping->has_bias)
		address = location->address - mapping->bias;
	else if (!mw_resolver_address(
			 resolver, location->address - mapping->start + mapping->offset, &address))
		return;
	nr = mw_resolver_lines(resolver, address, lines);
	if (nr)
		finder->found(finder->data, number, lines, nr);
}

/* Code that was compiled at run time is in no mapping of a file. */
static void resolve_compiled(const struct mw_symbol_finder *finder, const uint32_t *numbers,
			     uint32_t count)
{
	char *path = mw_symbols_perf_map_path(finder);
	int fd = path && finder->modules ? mw_modules_find(finder->modules, path) : -1;
	struct mw_perf_map *map;

	if (!path || (fd < 0 && finder->maps_are_open)) {
		free(path);
		return;
	}
	map = mw_perf_map_open(fd, path, finder->heap->profiles[0].owner);
	for (uint32_t i = 0; map && i < count; i++) {
		struct mw_resolved line = { .file = "" };

		line.function = mw_perf_map_find(map, finder->heap->locations[numbers[i]].address);
		if (line.function)
			finder->found(finder->data, numbers[i], &line, 1);
	}
	mw_perf_map_close(map);
	free(path);
}

static int compare_locations(const void *a, const void *b, void *data)
{
	const struct memwatch_heap *heap = data;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint32_t p = heap->locations[x].mapping, q = heap->locations[y].mapping;

	if (p != q)
		return p < q ? -1 : 1;
	return x < y ? -1 : x > y;
}

void mw_symbols_find(const struct mw_symbol_finder *finder, uint32_t *locations, uint32_t count)
{
	const struct mw_prof_location *all = finder->heap->locations;

	qsort_r(locations, count, sizeof(*locations), compare_locations, (void *)finder->heap);
	for (uint32_t i = 0, next; i < count; i = next) {
		uint32_t mapping = all[locations[i]].mapping;
		struct mw_resolver *resolver;

		for (next = i; next < count && all[locations[next]].mapping == mapping; next++)
			;
		if (mapping == MW_PROF_NONE) {
			resolve_compiled(finder, locations + i, next - i);
			continue;
		}
		resolver = open_mapping(finder, mapping);
		for (uint32_t k = i; resolver && k < next; k++)
			resolve_location(finder, resolver, locations[k]);
		mw_resolver_close(resolver);
	}
}
