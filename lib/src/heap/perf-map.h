/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Symbols of code that was compiled at run time: perf-PID.map in /tmp, which runtimes write for
 * perf. It is only read in a confined child.
 */
#ifndef MW_HEAP_PERF_MAP_H
#define MW_HEAP_PERF_MAP_H

#include <stdint.h>
#include <sys/types.h>

struct mw_perf_map;

/* Where a process with this number writes it, below @sysroot. The caller frees it. NULL: no memory.
 */
char *mw_perf_map_path(const char *sysroot, uint32_t pid);

/*
 * Reads the map @fd, or if it is -1 the one at @path, which must belong to @owner or root. Returns
 * NULL if there is none. Free with mw_perf_map_close().
 */
struct mw_perf_map *mw_perf_map_open(int fd, const char *path, uid_t owner);
void mw_perf_map_close(struct mw_perf_map *map);

/* The name of the function at @address, or NULL. */
const char *mw_perf_map_find(const struct mw_perf_map *map, uint64_t address);

#endif /* MW_HEAP_PERF_MAP_H */
