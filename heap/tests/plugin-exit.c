// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Preloaded behind the profiler: a library that allocates while the process exits, as the
 * destructors of large C++ libraries do, after that of the profiler.
 */
#include <stdlib.h>

#define OBJECTS 200000

__attribute__((destructor)) static void allocate_at_exit(void)
{
	static void *volatile object;

	for (int i = 0; i < OBJECTS; i++) {
		object = malloc(48);
		free(object);
	}
}
