// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader of heap profiles of jemalloc. The input follows the first line.
 */
#include "heap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_profile("heap_v2/1000\n", 13, data, size);
}
