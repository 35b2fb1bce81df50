// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader of perf-PID.map files, which compilers write while a program runs.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heap/perf-map.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[] = "/dev/shm/perf-map-XXXXXX";
	int fd = mkstemp(path);
	struct mw_perf_map *map;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	map = mw_perf_map_open(fd, path, geteuid());
	close(fd);
	for (int i = 0; map && i < 64; i++) {
		const char *name = mw_perf_map_find(map, 1ULL << i);

		if (name && strlen(name) > size)
			abort();
	}
	mw_perf_map_close(map);
	unlink(path);
	return 0;
}
