/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The mappings of a process, and the files behind them.
 */
#ifndef MW_HEAP_PROCESS_H
#define MW_HEAP_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memwatch/ctx.h>

#include "base/text.h"

/* A line of /proc/PID/maps. */
struct mw_process_mapping {
	char range[64];
	char permissions[8];
	uint64_t offset;
	char path[4096];
};

/* Returns false if the line is not understood. */
bool mw_process_mapping_parse(struct mw_text line, struct mw_process_mapping *ret);

/* The length of the path without " (deleted)", which the kernel appends if the name is gone. */
size_t mw_process_mapping_path_len(const struct mw_process_mapping *mapping);

/*
 * Finds the first mapping for which @wanted says so, which gets @data. Returns 0; -ENODATA, without
 * a message, if there is none; -ENOENT if there is no such process; or another negative errno.
 */
int mw_process_mapping_find(struct memwatch_ctx *ctx, uint32_t pid,
			    bool (*wanted)(const struct mw_process_mapping *mapping,
					   const void *data),
			    const void *data, struct mw_process_mapping *ret);

/*
 * Opens the file behind a mapping: as root the file itself, wherever its path leads now; otherwise
 * the file at its path. Returns a descriptor or a negative errno.
 */
int mw_process_mapping_open(struct memwatch_ctx *ctx, uint32_t pid,
			    const struct mw_process_mapping *mapping, bool writable);

/*
 * How many ns CLOCK_MONOTONIC of the process is ahead of that of the caller: both may be in time
 * namespaces. 0 if that is not known.
 */
int64_t mw_process_clock_ahead(struct memwatch_ctx *ctx, uint32_t pid);

#endif /* MW_HEAP_PROCESS_H */
