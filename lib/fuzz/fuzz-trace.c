// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Fuzzes the reader of traces, and feeds the samples that it returns to the detectors.
 */
#include <stdint.h>
#include <stdio.h>

#include <memwatch/growth.h>

#include "growth/trace.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memwatch_growth_row row = { .sz = sizeof(row) };
	MEMWATCH_OPTS(memwatch_growth_sample, sample);
	struct memwatch_growth *growth = NULL;
	struct memwatch_ctx *ctx = NULL;
	struct memwatch_trace *trace;
	FILE *file;

	if (!size || memwatch_ctx_new(NULL, &ctx))
		return 0;
	file = fmemopen((void *)data, size, "r");
	if (file && !mw_trace_open_file(ctx, file, "fuzz", &trace)) {
		if (!memwatch_growth_new(ctx, &growth)) {
			while (memwatch_trace_next(trace, &sample) == 1)
				if (memwatch_growth_feed(growth, &sample) < 0)
					break;
			for (unsigned int i = 0; memwatch_growth_get_row(growth, i, &row) == 1; i++)
				;
		}
		memwatch_growth_unref(growth);
		memwatch_trace_close(trace);
	}
	memwatch_ctx_unref(ctx);
	return 0;
}
