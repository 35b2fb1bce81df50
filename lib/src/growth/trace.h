/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Opens a trace from a stream instead of a path, for tests and the fuzzer.
 */
#ifndef MW_GROWTH_TRACE_H
#define MW_GROWTH_TRACE_H

#include <stdio.h>

#include <memwatch/growth.h>

/* As memwatch_trace_open(). Closes @file in the end, also on failure. */
int mw_trace_open_file(struct memwatch_ctx *ctx, FILE *file, const char *name,
		       struct memwatch_trace **ret);

#endif /* MW_GROWTH_TRACE_H */
