// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader of profiles of pprof. The input follows a sample type, so that the format is known.
 */
#include "heap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_profile("\x0a\x04\x08\x01\x10\x02", 6, data, size);
}
