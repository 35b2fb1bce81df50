// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Fuzzes the three parsers of /proc/memwatch with the same text.
 */
#include <stdint.h>

#include <memwatch/proc.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memwatch_proc_overhead *overhead = NULL;
	struct memwatch_proc_status *status = NULL;
	struct memwatch_proc_rmids *rmids = NULL;
	const char *text = (const char *)data;
	struct memwatch_ctx *ctx = NULL;

	if (memwatch_ctx_new(NULL, &ctx))
		return 0;
	memwatch_proc_status_parse(ctx, text, size, &status);
	memwatch_proc_rmids_parse(ctx, text, size, &rmids);
	memwatch_proc_overhead_parse(ctx, text, size, &overhead);
	memwatch_proc_status_free(status);
	memwatch_proc_rmids_free(rmids);
	memwatch_proc_overhead_free(overhead);
	memwatch_ctx_unref(ctx);
	return 0;
}
