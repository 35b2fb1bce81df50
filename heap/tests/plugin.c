// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A library that is loaded, allocates, and is unloaded while its objects live on.
 */
#include <stdlib.h>

void *plugin_keep(size_t size);

void *plugin_keep(size_t size)
{
	void *volatile memory = malloc(size);

	return memory;
}
