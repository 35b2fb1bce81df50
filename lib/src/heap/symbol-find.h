/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Finds the symbols of locations. It parses files of other users, so it only runs in a confined
 * child.
 */
#ifndef MW_HEAP_SYMBOL_FIND_H
#define MW_HEAP_SYMBOL_FIND_H

#include "heap/model.h"
#include "heap/modules.h"
#include "heap/resolve.h"

/**
 * struct mw_symbol_finder - where to look, and what to do with what is found
 * @sysroot: directory that is prepended to paths, or NULL
 * @modules: files that are open already, by these paths, or NULL
 * @maps_are_open: the perf map is among @modules; if it is not, it could not be opened, and
 *	what has its name here may be that of another process
 * @found: called for each location that is known, with its lines
 * @unread: NULL, or called for each mapping whose file cannot be read or is another one now
 */
struct mw_symbol_finder {
	const struct memwatch_heap *heap;
	const char *sysroot;
	const struct mw_modules *modules;
	bool maps_are_open;
	void (*found)(void *data, uint32_t location, const struct mw_resolved *lines, uint32_t nr);
	void (*unread)(void *data, uint32_t mapping);
	void *data;
};

/* The path of the file of a mapping; the caller frees it. NULL: there is no memory, or no file. */
char *mw_symbols_path(const struct mw_symbol_finder *finder, uint32_t mapping);

/* The same for the perf map of the process. NULL: there is no memory, or no process. */
char *mw_symbols_perf_map_path(const struct mw_symbol_finder *finder);

/* Sorts @locations, so that those of one file are found together. */
void mw_symbols_find(const struct mw_symbol_finder *finder, uint32_t *locations, uint32_t count);

#endif /* MW_HEAP_SYMBOL_FIND_H */
