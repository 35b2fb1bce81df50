/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The files of the module below /proc/memwatch.
 */
#ifndef MW_MODULE_PROC_FILE_H
#define MW_MODULE_PROC_FILE_H

#include <stddef.h>

#include <memwatch/ctx.h>

/*
 * Reads /proc/memwatch/@name; the caller frees with free(). Returns 0 or a negative errno with
 * an error text that says who may read it: -EREMOTE in a container, -ENOENT without the module.
 */
int mw_proc_file_read(struct memwatch_ctx *ctx, const char *name, char **ret, size_t *len);

#endif /* MW_MODULE_PROC_FILE_H */
