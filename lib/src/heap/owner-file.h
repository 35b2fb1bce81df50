/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Files of the owner of a profile; memwatch/heap-process.h has the functions that open them.
 */
#ifndef MW_HEAP_OWNER_FILE_H
#define MW_HEAP_OWNER_FILE_H

#include <stdint.h>

#include <memwatch/ctx.h>

/*
 * The path at which process @pid itself writes a map for perf, in its root directory and with its
 * number in its pid namespace. The caller frees it. NULL: there is no memory, or no such process.
 */
char *mw_owner_perf_map_path(struct memwatch_ctx *ctx, uint32_t pid);

#endif /* MW_HEAP_OWNER_FILE_H */
