/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The library's context, and what to say when the library says no.
 */
#ifndef MW_LIBRARY_H
#define MW_LIBRARY_H

#include <memwatch/memwatch.h>

#include "common/cmd.h"

/* A context with the root and the log level of the command line; 0 or an exit code. */
int mw_library_new(const struct mw_cli *cli, struct memwatch_ctx **ret);

/*
 * A function of the library returned @err. For those that talk to the module
 * and for those that read a file: -ENOENT does not mean the same.
 */
int mw_module_failed(struct memwatch_ctx *ctx, int err, const char *what);
int mw_file_failed(struct memwatch_ctx *ctx, int err, const char *path);

static inline void mw_library_cleanup(struct memwatch_ctx **ctx)
{
	memwatch_ctx_unref(*ctx);
}

#define mw_cleanup_ctx __attribute__((cleanup(mw_library_cleanup)))

#endif
