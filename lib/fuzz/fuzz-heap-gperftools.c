// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader of heap profiles of gperftools. The input follows what all of them begin with.
 */
#include "heap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_profile("heap profile:", 13, data, size);
}
