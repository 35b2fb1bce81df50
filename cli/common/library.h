/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The context of libmemwatch, and the error messages for its failures.
 */
#ifndef MW_LIBRARY_H
#define MW_LIBRARY_H

#include <memwatch/memwatch.h>

#include "common/cmd.h"

/*
 * Creates a context that follows --root, --quiet and --verbose. Returns 0, or an exit
 * code after an error message.
 */
int mw_library_new(const struct mw_cli *cli, struct memwatch_ctx **ret);

/* The reason why a call of the library returned @err: that of the context, or of the number. */
const char *mw_library_explain(struct memwatch_ctx *ctx, int err);

/*
 * Print the error message for a call of the library that returned @err, with a hint
 * where the remedy is known. Both return the exit code. The first is for calls that
 * use the module, where -ENOENT means that it is not loaded: the hint then ends with
 * @instead, which says what the user can do without it, or is NULL. The second is for
 * calls that read or write the file @path.
 */
int mw_module_failed(struct memwatch_ctx *ctx, int err, const char *what, const char *instead);
int mw_file_failed(struct memwatch_ctx *ctx, int err, const char *path);

static inline void mw_library_cleanup(struct memwatch_ctx **ctx)
{
	memwatch_ctx_unref(*ctx);
}

/* Releases a context when its variable goes out of scope. */
#define mw_cleanup_ctx __attribute__((cleanup(mw_library_cleanup)))

#endif
