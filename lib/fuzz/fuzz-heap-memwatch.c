// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader of memwatch's own heap profiles. The input is a file without its magic.
 */
#include "heap/profile-format.h"
#include "heap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_profile(MW_HEAP_MAGIC, 8, data, size);
}
